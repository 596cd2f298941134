"""Pages of Markdown as readers take them: code blocks, typed one after the other, links, headings.

What a fence says of its block, after the language:
    skip="WHY"       not run by tests
    dry_run="WHY"    its launches are run with --dry-run
    needs="PACKAGE"  run by an interpreter that has this package
A block of another language whose first line is `# NAME` is a file of that name; with `# NAME: COMMAND`
COMMAND is run then.
A block of text shows lines that the block of bash before it prints; … in them stands for anything.
"""

import dataclasses
import pathlib
import re

FENCE = re.compile(r"^```(\w*) *([^`\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r'(\w+)="([^"]*)"')
FILE = re.compile(r"# ([\w./-]+\.\w+)(?:: (.*))?")
MARK = "=== block of line "


@dataclasses.dataclass
class Block:
    line: int
    language: str
    options: dict
    text: str

    def code(self):
        """Its lines without comments, which each language has its own of."""
        return [re.sub(r"(^|\s+)#\s.*", "", line) for line in self.text.splitlines()]


class Page:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.text = self.path.read_text(encoding="utf-8")
        self.blocks = [Block(self.text.count("\n", 0, found.start()) + 1, found[1],
                             dict(OPTION.findall(found[2])), found[3]) for found in FENCE.finditer(self.text)]
        self.prose = FENCE.sub("", self.text)
        self.headings = [(len(marks), title) for marks, title in
                         re.findall(r"^(#+) (.+)$", self.prose, re.MULTILINE)]

    def anchors(self):
        """The names by which links reach its headings: those of code hosts, and those it gives itself."""
        made = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for _, title in self.headings}
        return made | set(re.findall(r'<a id="([^"]+)">', self.prose))

    def links(self):
        prose = re.sub(r"`[^`]*`", "", self.prose)
        return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if not re.match(r"\w+:", link)]

    def dead_links(self):
        """Its links to what is not there: files, and headings of pages."""
        for link in self.links():
            name, _, anchor = link.partition("#")
            target = self.path.parent / name if name else self.path
            if not target.exists() or (anchor and anchor not in Page(target).anchors()):
                yield link

    def needs(self):
        return {block.options["needs"] for block in self.blocks if "needs" in block.options}

    def script(self, starts, gpus=True):
        """Its blocks as a script for bash; `starts` defines fleetrun for those that need a package, by its
        name, and is empty where there is none. Without `gpus` lines that ask for some are left out."""
        lines = ["set -e"]
        for block in self.blocks:
            start = starts[block.options["needs"]] if "needs" in block.options else ":"
            if "skip" in block.options or not start:
                continue
            lines += [f"echo '{MARK}{block.line}'", start]
            if "dry_run" in block.options:
                lines.append(DRY_RUN)
            named = FILE.match(block.text)
            if block.language == "bash":
                lines += [line for line in block.text.splitlines() if gpus or "--gpus=" not in line]
            elif named:
                lines += [f"cat > {named[1]} <<'END_OF_FILE'", block.text + "END_OF_FILE", named[2] or ""]
            lines.append("unset -f fleetrun")
        return "\n".join(lines) + "\n"

    def missing(self, printed):
        """Lines that blocks of text show and the blocks before them did not print, in that order."""
        parts = dict(re.findall(rf"^{MARK}(\d+)\n(.*?)(?=^{MARK}|\Z)", printed, re.MULTILINE | re.DOTALL))
        before = None
        for block in self.blocks:
            if block.language != "text":
                before = block
            elif "skip" not in block.options and str(before.line) in parts:
                part, place = parts[str(before.line)], 0
                for line in filter(None, map(str.strip, block.text.splitlines())):
                    pattern = re.escape(line).replace("…", ".*")
                    found = re.compile(rf"^\s*{pattern}\s*$", re.MULTILINE).search(part, place)
                    if found:
                        place = found.end()
                    else:
                        yield f"{self.path.name}:{block.line}: {line}"


# doctor looks at the hosts themselves and has no dry run: only that it has such a flag is asked.
DRY_RUN = """fleetrun() {
  case "$1" in
    slurm | k8s | version) command fleetrun "$@" ;;
    doctor) command fleetrun doctor --help | grep -q -e "${2%%=*}" ;;
    *) command fleetrun --dry-run "$@" ;;
  esac
}"""
