"""A real Chromium, and what is asked of a page in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-quic --no-first-run --disable-component-update --disable-sync "
    "--hide-scrollbars --force-device-scale-factor=1"
)

# Each piece of text that is seen, with the contrast to what is behind it. Colours may
# be transparent: they are laid over each other.
CONTRAST = """
const parsed = (colour) => {
  const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
  return [r, g, b, a];
};
const over = ([r, g, b, a], below) =>
  [r, g, b].map((c, i) => c * a + below[i] * (1 - a));
const luminance = (colour) => {
  const [r, g, b] = colour.map((c) => {
    c /= 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const grounds = new Map([[null, [255, 255, 255]]]);
const behind = (element) => {
  if (!grounds.has(element)) {
    const colour = parsed(getComputedStyle(element).backgroundColor);
    grounds.set(element, over(colour, behind(element.parentElement)));
  }
  return grounds.get(element);
};
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const element = walk.currentNode.parentElement;
  if (!walk.currentNode.textContent.trim()) continue;
  if (element.closest("script, style, title, desc, .skip")) continue;
  if (!element.checkVisibility()) continue;
  const style = getComputedStyle(element);
  const ink = element.closest("svg") ? style.fill : style.color;
  const ground = behind(element);
  const [a, b] = [luminance(over(parsed(ink), ground)), luminance(ground)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  found.push([ratio, walk.currentNode.textContent.trim().slice(0, 40), ink]);
}
return found.sort((p, q) => p[0] - q[0]);
"""


def why_not() -> str:
    """Why there is no browser here; nothing if there is one."""
    try:
        import selenium  # noqa: F401
    except ModuleNotFoundError:
        return "selenium is not installed"
    missing = [each for each in ("chromium", "chromedriver") if not shutil.which(each)]
    return f"there is no {' and no '.join(missing)} here" if missing else ""


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A browser without a window, with an empty profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=Service(shutil.which("chromedriver"))
    )
    try:
        yield driver
    finally:
        driver.quit()


def resized(driver: Any, width: int, height: int = 800) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {
            "width": width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": width < 600,
        },
    )


def preferring(driver: Any, **features: str) -> None:
    """With media features such as prefers_color_scheme="dark"."""
    named = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})
