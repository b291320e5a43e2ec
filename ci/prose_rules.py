# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The rules of ci/prose: what one file of the tree breaks, as (rule, line, text)."""

import ast
import io
import re
import tokenize
from pathlib import Path

COLUMNS = 100

OPENINGS = "Who|What|Whoever|So|Of|Nobody|None|That"
# A word of the list where a paragraph, a cell or a sentence begins, and the rest of its sentence.
OPENING = re.compile(rf"(?:^|[.!?][\"')*_]*\s+|\|\s*)[(\"*_]*(?=((?:{OPENINGS})\b[^.!?|]*[.!?]?))")
# The same in an error text, which begins in lower case, at the beginning and after a colon.
ERROR_OPENING = re.compile(rf"(?:^|[.:]\s+)((?:{OPENINGS})\b[^.!?:]*)", re.IGNORECASE)
ERROR_TEXT = re.compile(r'#\[error\(\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)

METAPHORS = set(
    "hungry seat seats guest guests crumb crumbs patience books bell bells caretaker hub hubs "
    "spare spares warm warmth cool stir shelf shelves leaving leavings crew crews".split()
)
JOINS = set("and nor or but although though also even neither yet still so".split())
CONDITIONS = set(
    "when while until unless if as because with without of in into on onto at by for from to after "
    "before between among through under over above below beyond beside despite during since than "
    "where whatever whoever whenever which who what that although not".split()
)
DECLARED = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe|default)\s+)*"
    r"(?:struct|enum|union|trait|type|mod|fn|const|static)\s+([A-Za-z_]\w*)"
)
BODY = re.compile(r"^(\s*)(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|union)\s+\w+.*\{$")
MEMBER = re.compile(r"^\s+(?:pub(?:\([^)]*\))?\s+)?([A-Za-z_]\w*)\s*(?::(?!:)|,|\(|\{|=)")
TEST = re.compile(r"^\s*#\[(?:\w+::)*test(?:\(.*\))?\]")
MODULE = re.compile(r"^(\s*)(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*\{$")
FUNCTION = re.compile(r"^\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)")
# A comment after code: what stands before it holds no open string.
TRAILING = re.compile(r"""^((?:[^"/']|/(?!/)|'(?:\\?[^']|\\[^']+)'|'|"(?:\\.|[^"\\])*")*)//(.*)$""")
LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
MARK = re.compile(r"^(//[/!]?|#!?)\s?")


def paragraphs(lines):
    """Paragraphs of numbered lines of Markdown as (line, text), without its code."""
    found, fence = [], False
    begins = True
    code = False
    for number, line in lines:
        text = line.strip()
        if text.startswith("```"):
            fence = not fence
            begins = True
            continue
        if fence:
            continue
        if not text:
            begins = True
            continue
        code = line.startswith("    ") and (begins or code) and not LIST_ITEM.match(line)
        if code:
            continue
        if begins or text.startswith(("#", "|")) or LIST_ITEM.match(line):
            text = LIST_ITEM.sub("", text).lstrip("#> ")
            found.append((number, text))
        else:
            found[-1] = (found[-1][0], found[-1][1] + " " + text)
        begins = text.startswith(("#", "|")) or line.lstrip().startswith("#")
        if line.lstrip().startswith("#"):
            found.pop()
    return found


def openings(lines):
    for number, text in paragraphs(lines):
        text = re.sub(r"`[^`]*`", "`code`", text)
        for match in OPENING.finditer(text):
            if not match.group(1).endswith("?"):
                yield "opening", number, match.group(1)[:70]


def too_wide(number, line, comment):
    if len(line) > COLUMNS and not comment.startswith("|") and " " in comment.strip():
        yield "width", number, f"{len(line)} columns"


def blocks(comments):
    """Comments (line, mark, text) that follow each other, as blocks of (line, text)."""
    block, last = [], None
    for number, mark, text in comments:
        if block and (number, mark) != last:
            yield block
            block = []
        block.append((number, text))
        last = (number + 1, mark)
    if block:
        yield block


def line_comments(lines, language):
    """The comments of Rust, Go, shell or TOML as (line, mark, text), and their width."""
    comments, wide = [], []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        mark = MARK.match(text)
        starts = "//" if language in ("rs", "go") else "#"
        if text.startswith(starts) and mark and not text.startswith("#!/"):
            comment = text[mark.end():]
            # A rustdoc line that begins with "#" is a heading, which `paragraphs` knows.
            comments.append((number, mark.group(1) + str(line.find(text)), comment))
        elif starts == "//" and (after := TRAILING.match(line)):
            comment = after.group(2).strip()
            comments.append((number, f"trailing {number}", comment))
        else:
            continue
        wide.extend(too_wide(number, line, comment))
    return comments, wide


def python_comments(text):
    lines = text.split("\n")
    comments, wide = [], []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            number = token.start[0]
            comment = token.string.lstrip("# ")
            alone = token.line.strip().startswith("#")
            comments.append((number, "#" if alone else f"trailing {number}", comment))
            wide.extend(too_wide(number, lines[number - 1], comment))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            first = node.body[0].lineno
            for number, line in enumerate(ast.get_docstring(node).split("\n"), first):
                comments.append((number, f"docstring {first}", line))
    return comments, wide


def words(name):
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().replace("warm_up", "warmup")
    return [word for word in re.split(r"[^a-z0-9]+", spaced) if word]


def declared(lines):
    """Names of types, fields, variants, functions and modules as (line, name)."""
    end = None
    for number, line in enumerate(lines, 1):
        if match := DECLARED.match(line):
            yield number, match.group(1)
        if end is not None and line == end:
            end = None
        elif end is not None and (match := MEMBER.match(line)):
            yield number, match.group(1)
        if match := BODY.match(line):
            end = match.group(1) + "}"


def metaphors(path, lines):
    names = [(1, Path(path).stem), *declared(lines)]
    seen = set()
    for number, name in names:
        if name not in seen and METAPHORS.intersection(words(name)):
            seen.add(name)
            yield "metaphor", number, name


def test_names(lines):
    modules, is_test = [], False
    for number, line in enumerate(lines, 1):
        while modules and line == modules[-1][0] + "}":
            modules.pop()
        if match := MODULE.match(line):
            modules.append(match.groups())
        if TEST.match(line):
            is_test = True
        elif is_test and (match := FUNCTION.match(line)):
            is_test = False
            first = words(match.group(1))[0]
            has_subject = any(name not in ("tests", "test") for _, name in modules)
            if first in JOINS or (first in CONDITIONS and not has_subject):
                yield "test_name", number, match.group(1)


def error_texts(text):
    for found in ERROR_TEXT.finditer(text):
        number = text.count("\n", 0, found.start()) + 1
        joined = re.sub(r"\\\n\s*", "", found.group(1))
        for match in ERROR_OPENING.finditer(joined):
            yield "opening", number, match.group(1)[:70]


def dead_paths(text, tree):
    for number, line in enumerate(text.split("\n"), 1):
        for path in re.findall(r"`([\w/.-]+\.rs)`", line):
            if not any(("/" + file).endswith("/" + path) for file in tree):
                yield "dead_path", number, path


def findings(path, text, language, tree=()):
    lines = text.split("\n")
    if language == "md":
        yield from openings(enumerate(lines, 1))
        if path in ("docs/ARCHITECTURE.md", "docs/GLOSSARY.md"):
            yield from dead_paths(text, tree)
        return
    comments, wide = python_comments(text) if language == "py" else line_comments(lines, language)
    yield from wide
    for block in blocks(comments):
        yield from openings(block)
    if language == "rs":
        yield from metaphors(path, lines)
        yield from test_names(lines)
        yield from error_texts(text)
