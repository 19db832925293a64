"""Writes the results into docs/bench/ and into the pages README.md, docs/performance.md and docs/starting.md."""
import shutil
from pathlib import Path

PAGES = ("README.md", "docs/performance.md", "docs/starting.md")
FILES = ("*.svg", "summary.csv", "hosts.csv")


def replace_section(text, name, content):
    """Replaces the text between the section's two marks, if `text` contains them."""
    begin, end = f"<!-- bench: {name} -->", "<!-- bench: end -->"
    at = text.find(begin)
    if at < 0:
        return text
    close = text.index(end, at)
    return text[: at + len(begin)] + "\n" + content.strip("\n") + "\n" + text[close:]


def publish(root, out, sections):
    folder = Path(root) / "docs/bench"
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in FILES:
        for file in out.glob(pattern):
            shutil.copy(file, folder / file.name)
    for page in PAGES:
        path = Path(root) / page
        old = text = path.read_text()
        for name, content in sections.items():
            text = replace_section(text, name, content)
        if text != old:
            path.write_text(text)
