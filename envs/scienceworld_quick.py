"""Quicker versions of the simulator's slowest code, which give the same results.

So that traces repeat, the Java process gives all objects the same hash (``scienceworld_jvm``). A set of things is then
a list that is searched from its start, which is the largest part of a step; cutting texts into words with a regular
expression is the next. Three classes are read from the simulator, changed, and put in front of it on the class path:

- ``FlatHashTable.addEntry`` and ``ListSet.Node`` search as before, and so keep the order of all sets, but ask
  ``Quick.same`` instead of ``BoxesRunTime.equals``; the first one also finds the next place by a mask and not by a
  division, as a table's length is a power of two.
- ``InputParser.tokenize`` uses its regular expression only for texts that it would change.

A simulator whose code is not what is expected runs unchanged.
"""

from __future__ import annotations

import functools
import io
import logging
import zipfile
from importlib import resources
from pathlib import Path

from skillarena.envs.class_file import ClassFile

_QUICK = "skillarena/Quick"
_EQUALS = ("scala/runtime/BoxesRunTime", "equals")
_SAME = (_QUICK, "same", "(Ljava/lang/Object;Ljava/lang/Object;)Z")
_BLANKS = (_QUICK, "singleBlanks", "(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;")
_TABLE = "scala/collection/mutable/FlatHashTable"
_LIST = "scala/collection/immutable/ListSet$Node"
_PARSER = "scienceworld/input/InputParser$"
_INVOKE_VIRTUAL, _INVOKE_STATIC, _INVOKE_INTERFACE = b"\xb6", b"\xb8", b"\xb9"

logger = logging.getLogger(__name__)


@functools.cache
def quick_jar(simulator: Path) -> bytes | None:
    """A Java archive to put in front of ``simulator``, or None when that is not the one that can be changed."""
    try:
        with zipfile.ZipFile(simulator) as archive:
            classes = {
                _TABLE: _quicker_table(ClassFile(archive.read(f"{_TABLE}.class"))),
                _LIST: _quicker_list(ClassFile(archive.read(f"{_LIST}.class"))),
                _PARSER: _quicker_parser(ClassFile(archive.read(f"{_PARSER}.class"))),
            }
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        logger.warning("this version of ScienceWorld runs slower than others: its classes are unknown (%s)", error)
        return None
    classes[_QUICK] = (resources.files(__package__) / "scienceworld_java" / "Quick.class").read_bytes()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, code in classes.items():
            archive.writestr(f"{name}.class", code)
    return content.getvalue()


def _quicker_table(table: ClassFile) -> bytes:
    """With another search in ``addEntry``; what is on the stack where jumps end stays the same."""
    entries = _INVOKE_INTERFACE + table.reference(_TABLE, "table") + b"\x01\x00"
    old = (
        b"\x2d\xc6\x00\x25"  # while ((entry != null)) {
        + (b"\x2d\x2b" + _INVOKE_STATIC + table.reference(*_EQUALS))  # if (equals(entry, wanted))
        + b"\x99\x00\x05\x03\xac"  # return false;
        + (b"\x1c\x04\x60" + b"\x2a" + entries + b"\xbe\x70\x3d")  # h = (h + 1) % table().length;
        + (b"\x2a" + entries + b"\x1c\x32\x4e" + b"\xa7\xff\xdd")  # entry = table()[h]; }
    )
    new = (
        b"\x2d\xc6\x00\x25"  # the same
        + (b"\x2d\x2b" + _INVOKE_STATIC + table.add_reference(*_SAME))  # if (same(entry, wanted))
        + b"\x99\x00\x05\x03\xac"  # the same
        + (b"\x84\x02\x01" + b"\x2a" + entries)  # h++; table()
        + (b"\x59\xbe\x04\x64\x1c\x7e\x59\x3d\x32\x4e")  # entry = [h = (.length - 1) & h];
        + (b"\x00\x00" + b"\xa7\xff\xdd")  # two bytes are left; }
    )
    return table.replaced(old, new)


def _quicker_list(node: ClassFile) -> bytes:
    return node.replaced(
        _INVOKE_STATIC + node.reference(*_EQUALS), _INVOKE_STATIC + node.add_reference(*_SAME), times=2
    )


def _quicker_parser(parser: ClassFile) -> bytes:
    old = _INVOKE_VIRTUAL + parser.reference("java/lang/String", "replaceAll")
    return parser.replaced(old, _INVOKE_STATIC + parser.add_reference(*_BLANKS))
