"""A hook of MkDocs: the site has the layout of the repository, so that links work there and in a checkout alike."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "charts/*/README.md",
)
LINKED = ("LICENSE", "examples/**/*.*", "docs/**/*.svg", "docs/**/*.png", "benchmarks/results/*.json")
"""Files that pages show or link to. They are copied as they are."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of docs/ by those of the repository, named by their path in it. The theme's files stay."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    for pattern in (*PAGES, *LINKED):
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and name not in files.src_uris:
                files.append(File.generated(config, name, abs_src_path=str(path)))
    return files
