"""Changing compiled classes: what is found, what is added, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillarena import envs
from skillarena.envs.class_file import ClassFile

QUICK = (Path(envs.__path__[0]) / "scienceworld_java" / "Quick.class").read_bytes()
EQUALS = ("scala/runtime/BoxesRunTime", "equals")


def test_a_method_is_found_by_its_owner_and_name() -> None:
    assert QUICK.count(b"\xb8" + ClassFile(QUICK).reference(*EQUALS)) == 1  # it is called once, and statically
    with pytest.raises(ValueError, match=r"0 references to scala/runtime/BoxesRunTime\.unequal"):
        ClassFile(QUICK).reference(EQUALS[0], "unequal")


def test_an_added_method_can_be_found_and_the_rest_stays() -> None:
    quick = ClassFile(QUICK)
    call = b"\xb8" + quick.reference(*EQUALS)
    added = quick.add_reference("a/B", "c", "()V")
    changed = quick.replaced(call, b"\xb8" + added)
    assert ClassFile(changed).reference("a/B", "c") == added
    assert changed.endswith(QUICK[QUICK.index(call) + 3 :])
    assert changed[10:].startswith(QUICK[10 : QUICK.index(b"singleBlanks")])


def test_code_that_is_not_there_as_often_as_said_is_refused() -> None:
    quick = ClassFile(QUICK)
    with pytest.raises(ValueError, match="found 0 times"):
        quick.replaced(b"\xfe\xfe\xfe", b"\xfe\xfe\xfd")
    with pytest.raises(ValueError, match="of 3 and 2 bytes"):
        quick.replaced(b"\xb8" + quick.reference(*EQUALS), b"\x00\x00")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", QUICK[:10] + b"\xee" + QUICK[11:], QUICK[:8], QUICK[:90]])
def test_what_is_no_class_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut off|not a Java class file|unknown constant"):
        ClassFile(data)
