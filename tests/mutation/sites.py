# SPDX-License-Identifier: Apache-2.0
#
# Where a C++ file can be mutated, and the file with mutants in it: find() and apply(). Goes by
# tokens, not by grammar: what does not compile is for mutate.py to drop. Left out: comments,
# strings, preprocessor lines, checks for own bugs, and what has to be a constant expression.

import re

import header

OPERATORS = {"<": "Less", "<=": "LessEqual", ">": "Greater", ">=": "GreaterEqual", "==": "Equal",
             "!=": "NotEqual", "+": "Plus", "-": "Minus", "*": "Times", "/": "Divided",
             "%": "Modulo"}
BECOMES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
           "*": "+", "/": "*", "%": "/"}
OPEN, CLOSE = "([{", ")]}"
CONSTANT = re.compile(r"\b(constexpr|static_assert|enum|case|using|template|operator|alignas|"
                      r"static const|ENCORE_D?CHECK|extern|namespace)\b|^\s*const \w+ k[A-Z]")
STATEMENT = re.compile(
    r"(\*?[\w:]+((\.|->|::)\w+|\[[^;]*?\])*\s*([-+*/|&%^]|<<|>>)?=\s|(\+\+|--)\w|"
    r"[\w:]+((\.|->|::)\w+|\[[^\]]*\]|<[^<>]*>)*\(|(continue|break);)")
NO_STATEMENT = re.compile(r"(static_cast|ENCORE_D?CHECK|static_assert|for|if|while|switch|"
                          r"sizeof)\b")


def masked(text):
    """The text with comments and directives blank and strings full of S, every place the same."""
    tokens = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*|R"\((?:.*?)\)"|'
                        r'"(?:\\.|[^"\\\n])*"|'
                        r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'", re.S | re.M)

    def blank(match):
        fill = "S" if match[0][0] in "\"'R" else " "
        return re.sub(r"[^\n]", fill, match[0])

    return tokens.sub(blank, text)


def next_token(code, at):
    return re.compile(r"\s*").match(code, at).end()


def right_end(code, at, stop):
    """Where an operand that starts at `at` ends: at one of `stop`, or where its brackets do."""
    depth = 0
    while at < len(code):
        if code[at] in OPEN:
            depth += 1
        elif code[at] in CLOSE:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and (code[at] in ",;?" or code[at:at + 2] in stop
                             or re.match(r"\s:\s", code[at - 1:at + 2])):
            break
        at += 1
    return len(code[:at].rstrip())


def left_start(code, at, stop):
    """Where an operand that ends before `at` starts."""
    depth, at = 0, at - 1
    while at >= 0:
        if code[at] in CLOSE:
            depth += 1
        elif code[at] in OPEN:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and (code[at] in ",;?" or code[at - 1:at + 1] in stop
                             or re.match(r"\s[:=]\s", code[at - 1:at + 2])
                             or code[at - 5:at + 1] == "return"):
            break
        at -= 1
    return next_token(code, at + 1)


def constant_places(code):
    """For each place whether it is in a statement, or a list, that must be constant."""
    result = bytearray(len(code))
    stack, start = [False], 0
    for at, char in enumerate(code):
        if char in "{};":
            head = code[start:at]
            here = stack[-1] or bool(CONSTANT.search(head))
            function = char == "{" and re.search(r"(\)|\b(const|noexcept|override|try))\s*$", head)
            if here:
                result[start:at] = b"\1" * (at - start)
            if char == "{":
                lists = re.search(r"\b(enum|constexpr|static const)\b|\bk[A-Z]\w*\[", head)
                stack.append(stack[-1] or (bool(lists) and not function))
            elif char == "}" and len(stack) > 1:
                stack.pop()
            start = at + 1
    return result


def find(text):
    """The mutants of a file: edits [place, length, kind, text], where kind is -1 for what closes at
    the place, 0 for what replaces it and 1 for what opens there; # is the mutant's number."""
    code = masked(text)
    constant = constant_places(code)
    found = []

    def add(start, end, change, edits):
        if constant[start]:
            return
        line = code.count("\n", 0, start) + 1
        last = code.count("\n", 0, end) + 1
        found.append({"line": line, "last_line": last, "change": change, "edits": edits,
                      "text": text.split("\n")[line - 1].strip()})

    for match in re.finditer(r"(?<=\s)(<=|>=|==|!=|[-<>+*/%])(?=\s)", code):
        at, op = match.start(), match[0]
        if "S" in (code[:at].rstrip()[-1:], code[match.end():].lstrip()[:1]) and op in "+-":
            continue  # of strings
        add(at, match.end(), f"{op} becomes {BECOMES[op]}",
            [[at, len(op), 0, f"{op} mutants::{OPERATORS[op]}{{#}} {op}"]])
    for match in re.finditer(r"(?<=\s)(&&|\|\|)(?=\s)", code):
        at, op = match.start(), match[0]
        a = left_start(code, at, ["||"] if op == "&&" else [])
        b = next_token(code, match.end())
        end = right_end(code, b, ["&&", "||"] if op == "&&" else ["||"])
        add(a, end, f"{op} becomes {'||' if op == '&&' else '&&'}",
            [[a, end - a, 1, "mutants::Not(#, mutants::Not(#, "],
             [at, 2, 0, ") && mutants::Not(#, " if op == "&&" else ") || mutants::Not(#, "],
             [end, end - a, -1, "))"]])
        add(b, end, f"no {op} {text[b:end]}",
            [[b, end - b, 1, "(mutants::Active(#) || (" if op == "&&" else
              "(!mutants::Active(#) && ("], [end, end - b, -1, "))"]])
    for match in re.finditer(r"\bif \(", code):
        at, end = match.end(), right_end(code, match.end(), [])
        while code[end:end + 1] in (",", ";", "?", ":"):
            at = next_token(code, end + 1) if code[end] == ";" else at
            end = right_end(code, end + 1, [])
        add(at, end, "the condition is false",
            [[at, end - at, 1, "!mutants::Active(#) && ("], [end, end - at, -1, ")"]])
    for match in re.finditer(r"(?<![\w.<'])(?<![ep][-+])\d+(?![\w.>'])", code):
        if not re.search(r"\w \w+\[[^\]\n]*$", code[:match.start()]):
            add(match.start(), match.end(), f"{match[0]} becomes {match[0]} + 1",
                [[match.start(), len(match[0]), 0, f"mutants::PlusOne(#, {match[0]})"]])
    for match in re.finditer(r"(?<![\w<])(true|false)(?![\w>])", code):
        add(match.start(), match.end(), f"not {match[0]}",
            [[match.start(), len(match[0]), 0, f"mutants::Not(#, {match[0]})"]])
    for match in re.finditer(r"\bstd::(min|max)(<\w+>)?\(", code):
        name = match[1].capitalize()
        add(match.start(), match.end(), f"not the {match[1]}",
            [[match.start(), len(match[0]), 0, f"mutants::{name}{match[2] or ''}(#, "]])
    for match in re.finditer(r"(\.|->)(begin|end)\b(\(\))?", code):
        start = match.start()
        while re.match(r"[\w.:>\-]", code[start - 1]):
            start -= 1
        whole = text[start:match.start()] + match[1] + {"begin": "end", "end": "begin"}[match[2]]
        if match.start() > start:
            add(start, match.end(), f"{match[2]} becomes its other",
                [[start, match.end() - start, 1,
                  f"(mutants::Active(#) ? {whole}{match[3] or ''} : "],
                 [match.end(), match.end() - start, -1, ")"]])
    for match in re.finditer(r"(?<=[;{}])\s*", code):
        at = match.end()
        if constant[at:at + 1] != b"\0" or NO_STATEMENT.match(code, at):
            continue
        if not STATEMENT.match(code, at):
            continue
        end = right_end(code, at, [])
        while code[end:end + 1] in (",", "?", ":"):
            end = right_end(code, end + 1, [])
        if code[end:end + 1] == ";" and not re.compile(r";\s*else\b").match(code, end):
            add(at, end, "no " + re.sub(r"\s+", " ", text[at:end + 1])[:60],
                [[at, end - at, 1, "if (!mutants::Active(#)) "]])
    return found


def apply(text, mutants):
    """The text with these mutants, and an #include before its first line."""
    edits = [(place, kind, -length * kind, mutant["id"] * kind, length, new, mutant["id"])
             for mutant in mutants for place, length, kind, new in mutant["edits"]]
    # At one place, what closes comes first, the innermost before others; then what opens, the
    # outermost before others; then what replaces.
    edits.sort(key=lambda e: (e[0], {-1: 0, 1: 1, 0: 2}[e[1]], e[2], e[3]))
    out, done = ['#include "' + header.NAME + '"\n'], 0
    for place, kind, _, _, length, new, number in edits:
        out.append(text[done:place])
        out.append(new.replace("#", str(number)))
        done = place + (length if kind == 0 else 0)
    return "".join(out) + text[done:]
