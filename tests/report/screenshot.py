"""The picture in the docs: python -m tests.report.screenshot docs/report.png."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.report.browser import chromium, preferring, resized

WIDTH, HEIGHT = 1280, 960


def main(picture: str, anchor: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        losses = Path(__file__).with_name("losses.py")
        command = [sys.executable, "-m", "gradsmith", "report", losses.name]
        subprocess.run([*command, "-o", page], cwd=losses.parent, check=False)
        with chromium(Path(folder, "profile")) as driver:
            preferring(driver, prefers_color_scheme="light")
            resized(driver, WIDTH, HEIGHT)
            driver.get(page.as_uri() + anchor)
            driver.save_screenshot(picture)
    sys.stdout.write(f"{picture}: {Path(picture).stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
