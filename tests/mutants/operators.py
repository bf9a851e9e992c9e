# SPDX-License-Identifier: MIT
"""The changes that mutants make: the operators, and their view of a source.

A Source is the text of a C file with a mask of equal length, in which comments, strings and
preprocessor lines are blank, so that offsets are the same in both. An operator is a function of
(source, first, last), the offsets of a line, that yields edits (start, end, replacement) of the
text. A new operator is a function and a row in OPERATORS.
"""
import re

NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S | re.M)
CLOSING = {"(": ")", "[": "]", "{": "}"}
NO_DROP = ("return", "goto", "case", "default", "else", "if", "for", "while", "do", "switch", "static", "const", "struct",
           "enum", "union", "WEIR_ASSERT", "_Static_assert", "CU_")


class Source:
    def __init__(self, text):
        self.text = text
        self.mask = NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        self.lines = [0]  # offsets of the lines
        for m in re.finditer(r"\n", text):
            self.lines.append(m.end())

    def line(self, number):
        """The offsets of line `number` (from 1), without its line end."""
        last = self.lines[number] - 1 if number < len(self.lines) else len(self.text)
        return self.lines[number - 1], last

    def number(self, at):
        return self.text.count("\n", 0, at) + 1

    def close(self, at):
        """The offset of the bracket that closes the one at `at`; -1: not closed."""
        stack = []
        for i in range(at, len(self.mask)):
            c = self.mask[i]
            if c in CLOSING:
                stack.append(CLOSING[c])
            elif stack and c == stack[-1]:
                stack.pop()
                if not stack:
                    return i
        return -1

    def statement(self, first, last):
        """(start, end) of the statement that begins on the line and ends in ';'; None: no such statement."""
        start = re.compile(r"\S").search(self.mask, first, last)
        before = self.mask[:first].rstrip()
        if not start or not before or before[-1] not in ";{}):" and not before.endswith("else"):
            return None
        end, at = -1, start.start()
        while at < len(self.mask) and end < 0:
            c = self.mask[at]
            if c == "{" or c == "}":
                return None
            if c in "([":
                at = self.close(at)
                if at < 0:
                    return None
            elif c == ";":
                end = at + 1
            at += 1
        return (start.start(), end) if end > 0 else None

    def returns(self, at):
        """The return type, as text, of the function around `at`; None: outside of functions."""
        head = None
        for m in re.finditer(r"^(?!\s)([\w \t*]+?)\b\w+\((?:[^;{}]|\n)*?\)[^;{}()]*(?:\([^;{}]*\))?\s*\{", self.mask[:at], re.M):
            head = m
        if not head or self.close(head.end() - 1) < at:
            return None
        return head.group(1).strip()


def words(source, first, last, pattern):
    return re.compile(pattern).finditer(source.mask, first, last)


def constant(source, first, last):
    """A whole number is changed by one."""
    for m in words(source, first, last, r"(?<![\w.])(\d+|0[xX][0-9a-fA-F]+)([uUlL]*)(?![\w.])"):
        value = int(m.group(1), 0 if m.group(1)[:2] in ("0x", "0X") else 10)
        for other in (value + 1, value - 1):
            if other >= 0 or not m.group(2):
                text = str(other) if other >= 0 else "(%d)" % other
                yield m.start(), m.end(), text + m.group(2)


def comparison(source, first, last):
    """A comparison includes its bound, or no longer does."""
    swap = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    for m in words(source, first, last, r"(?<=\s)(<=|>=|<|>)(?=\s)"):
        yield m.start(), m.end(), swap[m.group()]


def negation(source, first, last):
    """A condition is negated."""
    for m in words(source, first, last, r"\b(?:if|while)\s*\("):
        end = source.close(m.end() - 1)
        if end > 0:
            yield m.end(), end, "!(" + source.text[m.end():end] + ")"
    for m in words(source, first, last, r"(?<=\s)(==|!=|&&|\|\|)(?=\s)"):
        yield m.start(), m.end(), {"==": "!=", "!=": "==", "&&": "||", "||": "&&"}[m.group()]
    for m in words(source, first, last, r"!(?=[\w(])"):
        yield m.start(), m.end(), ""
    for m in words(source, first, last, r"\b(true|false)\b"):
        yield m.start(), m.end(), "false" if m.group() == "true" else "true"


def is_declaration(text):
    return re.match(r"[A-Za-z_]\w*(?:\s+\*?|\s*\*+\s*)[A-Za-z_]\w*\s*(?:=|;|,|\[)", text) is not None


def dropped(source, first, last):
    """A statement is removed."""
    at = source.statement(first, last)
    if not at:
        return
    text = source.mask[at[0]:at[1]]
    if not text.startswith(NO_DROP) and not is_declaration(text):
        yield at[0], at[1], "(void)0;"


def swapped_class(source, first, last):
    """One class is used for another."""
    for m in words(source, first, last, r"(?:\b\w+(?:\[\w+\])?(?:->|\.))*\bclass_id\b(?!\s*=[^=])"):
        yield m.start(), m.end(), "(%s ? 0 : 1)" % source.text[m.start():m.end()]
    for m in words(source, first, last, r"\[(c)\]"):
        yield m.start(1), m.end(1), "c ? 0 : 1"


def relaxed_order(source, first, last):
    """An atomic access becomes relaxed."""
    for m in words(source, first, last, r"\bmemory_order_(?:acquire|release|acq_rel|seq_cst)\b"):
        yield m.start(), m.end(), "memory_order_relaxed"
    plain = r"\b(atomic_(?:load|store|exchange|fetch_(?:add|sub|or|and)))\("
    for m in words(source, first, last, plain):
        end = source.close(m.end() - 1)
        if end > 0:
            inside = source.text[m.end():end]
            yield m.start(), end, "%s_explicit(%s, memory_order_relaxed" % (m.group(1), inside)


def early_return(source, first, last):
    """The function returns before a statement."""
    at = source.statement(first, last)
    if not at or source.mask.startswith("return", at[0]) or is_declaration(source.mask[at[0]:at[1]]):
        return
    type_ = source.returns(at[0])
    if type_:
        void = re.search(r"\bvoid$", type_) is not None
        yield at[0], at[1], "{ return%s; %s }" % ("" if void else " 0", source.text[at[0]:at[1]])


OPERATORS = {
    "constant": constant,
    "comparison": comparison,
    "negation": negation,
    "dropped": dropped,
    "class": swapped_class,
    "order": relaxed_order,
    "return": early_return,
}
