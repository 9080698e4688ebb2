"""Small changes to compiled Java classes: other methods called, and code replaced by code of the same length."""

from __future__ import annotations

import struct

_UTF8, _LONG, _DOUBLE, _CLASS, _METHOD, _INTERFACE_METHOD, _NAME_AND_TYPE = 1, 5, 6, 7, 10, 11, 12
_SIZES = {3: 4, 4: 4, _LONG: 8, _DOUBLE: 8, _CLASS: 2, 8: 2, 9: 4, _METHOD: 4, _INTERFACE_METHOD: 4}
_SIZES |= {_NAME_AND_TYPE: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes behind the tag of each kind of constant (Java Virtual Machine Specification, section 4.4)."""
_POOL = 10
"""Where the constants begin; their number stands before them."""


class ClassFile:
    """A compiled class.

    Args:
        data: the file's bytes.

    Raises:
        ValueError: they are no class file.
    """

    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\xca\xfe\xba\xbe":
            raise ValueError("not a Java class file")
        self._data = data
        self._constants: dict[int, tuple[int, bytes]] = {}
        """Tag and content by index."""
        self._added: list[bytes] = []
        try:
            self._next, self._end = self._read()
        except (IndexError, struct.error) as error:
            raise ValueError("a Java class file that is cut off") from error

    def reference(self, owner: str, name: str) -> bytes:
        """The operand with which the code calls a method. Raises ``ValueError`` unless there is exactly one."""
        found = [
            index
            for index, (tag, content) in self._constants.items()
            if tag in (_METHOD, _INTERFACE_METHOD) and self._called(content) == (owner, name)
        ]
        if len(found) != 1:
            raise ValueError(f"{len(found)} references to {owner}.{name}")
        return _short(found[0])

    def add_reference(self, owner: str, name: str, descriptor: str) -> bytes:
        """The operand for a method that the class has not called before."""
        named = self._add(_NAME_AND_TYPE, self._add_text(name) + self._add_text(descriptor))
        return self._add(_METHOD, self._add(_CLASS, self._add_text(owner)) + named)

    def replaced(self, old: bytes, new: bytes, times: int = 1) -> bytes:
        """The class with other code of the same length. Raises ``ValueError`` unless ``old`` is in it ``times``."""
        rest = self._data[self._end :]
        if len(old) != len(new) or rest.count(old) != times:
            raise ValueError(f"code found {rest.count(old)} times, of {len(old)} and {len(new)} bytes")
        constants = self._data[_POOL : self._end] + b"".join(self._added)
        return self._data[: _POOL - 2] + _short(self._next) + constants + rest.replace(old, new)

    def _read(self) -> tuple[int, int]:
        """The constants' number and end."""
        index, at = 1, _POOL
        (count,) = struct.unpack_from(">H", self._data, _POOL - 2)
        while index < count:
            tag = self._data[at]
            start, size = at + 1, _SIZES.get(tag)
            if tag == _UTF8:
                (size,) = struct.unpack_from(">H", self._data, start)
                start += 2
            elif size is None:
                raise ValueError(f"unknown constant {tag}")
            self._constants[index] = (tag, self._data[start : start + size])
            at = start + size
            index += 2 if tag in (_LONG, _DOUBLE) else 1
        return count, at

    def _called(self, content: bytes) -> tuple[str, str]:
        owner, named = struct.unpack(">HH", content)
        return self._text(self._constants[owner][1]), self._text(self._constants[named][1])

    def _text(self, content: bytes) -> str:
        return self._constants[struct.unpack_from(">H", content)[0]][1].decode("utf-8", "replace")

    def _add(self, tag: int, content: bytes) -> bytes:
        self._added.append(bytes([tag]) + content)
        self._next += 1
        return _short(self._next - 1)

    def _add_text(self, text: str) -> bytes:
        encoded = text.encode()
        return self._add(_UTF8, _short(len(encoded)) + encoded)


def _short(number: int) -> bytes:
    return struct.pack(">H", number)
