"""Where a source of core can be changed, and into what: one place and one change is a mutant.

Most are chosen at run time: `switched` writes a source in which each is behind its number. What the compiler must know
(tables, case labels, constants of the file) is changed in the text, one at a time."""

import re
from dataclasses import dataclass

import tree_sitter_c
from tree_sitter import Language, Parser

RELATIONAL = {"<": "<=", ">": ">=", "<=": "<", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&"}
ASSIGNMENT = {"+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<=", "^=": "|=", "%=": "/="}
# What they are given is no expression of the program, or is one that nothing depends on.
OPAQUE = {"assert", "static_assert", "_Static_assert", "offsetof", "container_of", "ARRAY_LEN", "va_start", "va_arg", "va_end", "NEW", "NEW_ARRAY"}


@dataclass(frozen=True)
class Mutant:
    file: str
    function: str
    start: int
    end: int
    text: str  # what stands there instead; "" for a statement that is dropped
    kind: str  # "expression", "statement": behind a number; "text": compiled by itself


class Source:
    def __init__(self, name, text):
        self.name, self.text = name, text
        self.bytes = text.encode()
        self.functions = []  # of which each: name, start and end of its body
        self.mutants = []
        root = Parser(Language(tree_sitter_c.language())).parse(self.bytes).root_node
        for node in root.children:
            if node.type == "function_definition":
                self._function(node)
            elif node.type == "declaration":
                self._table(node, "")
            elif node.type == "preproc_def":
                value = node.child_by_field_name("value")
                if value and re.fullmatch(rb"\(?[\w() +*/-]*\d[\w() +*/-]*", value.text.strip()):
                    self._add("", value, f"(({value.text.decode().strip()}) + 1)", "text")
        self.mutants.sort(key=lambda m: (m.start, -m.end, m.text))

    def _add(self, function, node, text, kind="expression", end=None):
        if node.has_error:  # a macro that takes a type, say
            return
        self.mutants.append(Mutant(self.name, function, node.start_byte, end or node.end_byte, text, kind))

    # ---- functions ----

    def _function(self, node):
        declarator = node.child_by_field_name("declarator")
        name, pointer = declarator, False
        while name.type != "identifier":
            pointer |= name.type == "pointer_declarator"
            name = name.child_by_field_name("declarator")
            if name is None:
                return
        kind = node.child_by_field_name("type").text.decode()
        body = node.child_by_field_name("body")
        function = name.text.decode()
        self.functions.append((function, body.start_byte, body.end_byte))
        self._walk(body, function, "*" if pointer else kind)

    def _walk(self, node, function, returned):
        handler = getattr(self, "_" + node.type, None)
        if node.type == "ERROR" or (handler and handler(node, function, returned) is False):
            return
        for i, child in enumerate(node.children):
            field = node.field_name_for_child(i)
            if node.type == "case_statement" and field == "value":
                continue
            if field in ("size", "designator", "type", "label") or (field == "update" and node.type == "for_statement"):
                continue
            self._walk(child, function, returned)

    def _sizeof_expression(self, *_):
        return False

    _concatenated_string = _subscript_designator = _type_descriptor = _preproc_def = _preproc_function_def = _sizeof_expression

    def _declaration(self, node, function, _):
        if any(child.type == "storage_class_specifier" and child.text == b"static" for child in node.children):
            self._table(node, function)
            return False

    def _call_expression(self, node, function, returned):
        name = node.child_by_field_name("function")
        if name.text.decode() in OPAQUE:
            return False
        if name.type != "identifier":
            self._walk(name, function, returned)
        for child in node.child_by_field_name("arguments").named_children:
            self._walk(child, function, returned)
        return False

    def _binary_expression(self, node, function, _):
        left, right = (node.child_by_field_name(f) for f in ("left", "right"))
        operator = node.child_by_field_name("operator")
        sign = operator.type
        around = [self.bytes[a:b].decode() for a, b in ((node.start_byte, operator.start_byte), (operator.end_byte, node.end_byte))]
        if sign in ("&&", "||"):
            self._add(function, node, ("||" if sign == "&&" else "&&").join(around))
            for side in (left, right):
                self._add(function, node, side.text.decode())
        elif sign in RELATIONAL or sign in ARITHMETIC:
            self._add(function, node, (RELATIONAL.get(sign) or ARITHMETIC[sign]).join(around))

    def _condition(self, node, function, always=True):
        if node.type == "parenthesized_expression":
            node = node.named_children[0]
        if node.type in ("true", "false", "number_literal", "comma_expression"):
            return
        self._add(function, node, "false")
        if always:
            self._add(function, node, "true")

    def _if_statement(self, node, function, _):
        self._condition(node.child_by_field_name("condition"), function)

    def _while_statement(self, node, function, _):
        self._condition(node.child_by_field_name("condition"), function, always=False)

    _do_statement = _while_statement

    def _for_statement(self, node, function, _):
        condition = node.child_by_field_name("condition")
        if condition:
            self._condition(condition, function, always=False)

    def _conditional_expression(self, node, function, _):
        self._condition(node.child_by_field_name("condition"), function)

    def _unary_expression(self, node, function, _):
        if node.child_by_field_name("operator").type in ("!", "-", "~"):
            self._add(function, node, node.child_by_field_name("argument").text.decode())

    def _update_expression(self, node, function, _):
        text = node.text.decode()
        self._add(function, node, text.replace("++", "--") if "++" in text else text.replace("--", "++"))

    def _assignment_expression(self, node, function, _):
        operator = node.child_by_field_name("operator")
        if operator.type in ASSIGNMENT:
            texts = [self.bytes[a:b].decode() for a, b in ((node.start_byte, operator.start_byte), (operator.end_byte, node.end_byte))]
            self._add(function, node, ASSIGNMENT[operator.type].join(texts))

    def _number_literal(self, node, function, _):
        text = node.text.decode()
        self._add(function, node, f"({text} + 1)")

    def _true(self, node, function, _):
        self._add(function, node, "false")

    def _false(self, node, function, _):
        self._add(function, node, "true")

    def _identifier(self, node, function, _):
        text = node.text.decode()
        if re.fullmatch(r"[A-Z][A-Z0-9_]+", text):
            self._add(function, node, f"({text} + 1)")

    def _return_statement(self, node, function, returned):
        if not node.named_children:
            self._add(function, node, "", "statement")
            return
        value = node.named_children[0]
        text = value.text.decode()
        if returned == "bool":
            if text not in ("true", "false") and not text.startswith("!"):
                self._add(function, value, f"!({text})")
        elif returned == "*":
            if text != "NULL":
                self._add(function, value, "NULL")
        elif returned.startswith("struct"):
            if value.type != "compound_literal_expression" or "=" in text:
                self._add(function, value, f"({returned}){{ 0 }}")
        elif text != "0":
            self._add(function, value, "0")

    def _initializer_pair(self, node, function, _):
        value = node.child_by_field_name("value")
        text = value.text.decode()
        if value.type != "initializer_list" and text not in ("0", "false", "NULL"):
            self._add(function, value, f"(__typeof__({text})){{ 0 }}")

    def _expression_statement(self, node, function, _):
        text = node.text.decode()
        if node.named_children and not text.startswith("(void)") and not re.match(r"(%s)\b" % "|".join(OPAQUE), text):
            self._add(function, node, "", "statement")

    def _break_statement(self, node, function, _):
        self._add(function, node, "", "statement")

    _continue_statement = _goto_statement = _break_statement

    # ---- what the compiler must know ----

    def _table(self, node, function):
        if node.type in ("initializer_pair", "initializer_list") and node.parent.type == "initializer_list":
            after = node.next_sibling
            if after and after.type == ",":
                self._add(function, node, "", "text", end=after.end_byte)
        if node.type in ("true", "false"):
            self._add(function, node, "false" if node.type == "true" else "true", "text")
        elif node.type == "number_literal" and node.parent.type not in ("array_declarator", "subscript_designator"):
            self._add(function, node, f"({node.text.decode()} + 1)", "text")
        if node.type not in ("array_declarator", "subscript_designator", "call_expression", "ERROR"):
            for child in node.children:
                self._table(child, function)

    # ---- as text ----

    def line(self, at):
        return self.bytes.count(b"\n", 0, at) + 1

    def changed(self, mutant):
        """The lines of a mutant as they are, and as they are not, each as one."""
        start = self.bytes.rfind(b"\n", 0, mutant.start) + 1
        end = self.bytes.find(b"\n", mutant.end)
        before, after = self.bytes[start : mutant.start].decode(), self.bytes[mutant.end : end].decode()
        return squeezed(before + self.bytes[mutant.start : mutant.end].decode() + after), squeezed(before + mutant.text + after)

    def with_change(self, mutant):
        return (self.bytes[: mutant.start] + mutant.text.encode() + self.bytes[mutant.end :]).decode()


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def switched(source, numbers, probes):
    """The source with its mutants behind their numbers, and for each number where its code is.

    `probes` has the number of each function that tells that it was reached."""
    spans = {}
    for mutant, number in numbers.items():
        spans.setdefault((mutant.start, mutant.end), []).append((mutant, number))
    for name, start, end in source.functions:
        spans.setdefault((start, end), []).append((None, probes[name]))
    ordered = sorted(spans, key=lambda span: (span[0], -span[1]))
    out, places, at = [], [], 0

    def put(text):
        nonlocal at
        out.append(text)
        at += len(text.encode())

    def write(start, end, inner):
        position = start
        while inner:
            span = inner.pop(0)
            nested = []
            while inner and inner[0][1] <= span[1]:
                nested.append(inner.pop(0))
            put(source.bytes[position : span[0]].decode())
            position = span[1]
            wrap(span, nested)
        put(source.bytes[position:end].decode())

    def wrap(span, nested):
        group = spans[span]
        begun = at
        if group[0][0] is None:
            put("{ (void)M(%d);" % group[0][1])
            write(span[0] + 1, span[1], nested)
        elif group[0][0].kind == "statement":
            put("{ if (!M(%d)) " % group[0][1])
            write(*span, nested)
            put(" }")
            places.append((begun, at, group[0][1]))
        else:
            put("(")
            for mutant, number in group:
                start = at
                put(f"M({number}) ? ({mutant.text}) : ")
                places.append((start, at, number))
            put("(")
            write(*span, nested)
            put("))")
            places.extend((begun, at, number) for _, number in group)

    write(0, len(source.bytes), ordered)
    return "".join(out), places
