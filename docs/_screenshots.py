"""Takes the pictures of the report and of the live page: python docs/_screenshots.py [RUNS]; nothing else needs it.

Five networks are trained on the embedded digits (ten minutes; those that stand in RUNS are taken as they are), and
their pages are opened in Chromium. Needs the test extra and a Chromium.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from leadline.core.config import RunConfig
from leadline.execute.run_one import Diverged, run_one
from leadline.report import write

INTO = Path(__file__).parent / "_static"
PROBES = (
    *("gradient_norm_ratio@every:5", "gradient_range@every:10", "activation_range@every:10", "weight_range@every:25"),
    *("update_ratio@every:5", "weight_norm@every:5", "weight_condition@every:25", "collinearity@every:10"),
    *("hidden_condition@every:25", "operator_condition@every:75", "norm_bound@every:25"),
    *("generalisation_gap@every:15", "hessian_spectrum@every:50", "feature_predictability@every:75"),
    "residual_probe@every:75",
)
NETS = {
    "collapse": ("plainnet-50", "none"),
    "explode": ("plainnet-50", "batch"),
    "healthy": ("resnet-50", "batch"),
    "unnormed": ("resnet-50", "none"),
    "procrustes": ("procresnet-49", "batch"),
}
"""Of each picture the model and its norm."""
CHECK = (
    *("check", "plainnet-50", "--arg", "norm=batch", "--arg", "widths=8,16,32", "--arg", "block=basic"),
    *("--data", "digits", "--optimizer", "sgd", "--lr", "0.05", "--prove"),
)
COMMAND = (sys.executable, "-c", "import sys; from leadline.cli import main; sys.exit(main())")
SWITCHES = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


def trained(root: Path, name: str) -> Path:
    """The run folder of a network: 150 steps as the demo makes them, with many readings."""
    model, norm = NETS[name]
    kind = {} if model.startswith("proc") else {"block": "basic"}
    args: dict[str, Any] = {"norm": norm, "widths": [8, 16, 32], **kind}
    config = RunConfig.parse(
        {
            "model": {"name": model, "args": args},
            "data": {"name": "digits", "batch_size": 64},
            "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4},
            "training": {"steps": 150},
            "probes": list(PROBES),
        }
    )
    with suppress(Diverged):  # its readings are what is to be shown
        run_one(config, root)
    return root / config.identity


def proved(root: Path) -> Path:
    """A check that tried its remedies."""
    folder = root.with_name("check")
    if not (folder / "proofs.json").exists():
        subprocess.run([*COMMAND, *CHECK, "-o", str(folder)], stdout=subprocess.DEVNULL, check=False)
    return folder


@contextmanager
def opened(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """A page with everything on it drawn."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    page.goto(address)
    page.wait_for_timeout(1500)
    page.evaluate(
        "async () => { for (let y = 0; y < document.body.scrollHeight; y += 500)"
        " { scrollTo(0, y); await new Promise((go) => setTimeout(go, 250)); } scrollTo(0, 0); }"
    )
    page.wait_for_timeout(800)
    yield page
    context.close()


def shoot(page: Page, name: str, **options: Any) -> None:
    page.screenshot(path=INTO / f"{name}.png", **options)


HALFWAY = """() => {
  const slider = document.querySelector(".steps input");
  slider.value = Math.round(slider.max / 2);
  slider.dispatchEvent(new Event("input"));
}"""


def reports(browser: Browser, folders: dict[str, Path], checked: Path, pages: Path) -> None:
    """The report wide and narrow, light and dark, on paper, of one network and of three."""
    for name in folders:
        write(pages / f"{name}.html", [folders[name]])
        with opened(browser, (pages / f"{name}.html").as_uri(), viewport={"width": 1280, "height": 1180}) as page:
            page.evaluate(HALFWAY)
            page.wait_for_timeout(800)
            shoot(page, f"gallery-{name}")
    sick, healthy = write(pages / "check.html", [checked]), pages / "healthy.html"
    together = write(pages / "together.html", [folders[name] for name in ("collapse", "explode", "healthy")])
    with opened(browser, sick.as_uri(), viewport={"width": 1280, "height": 1180}) as page:
        shoot(page, "report")
    with opened(browser, healthy.as_uri(), color_scheme="dark", viewport={"width": 1280, "height": 1180}) as page:
        shoot(page, "report-dark")
    with opened(browser, sick.as_uri(), viewport={"width": 390, "height": 1300}, is_mobile=True) as page:
        shoot(page, "report-phone")
    with opened(browser, together.as_uri()) as page:
        page.locator('[data-part="profile"]').evaluate("(part) => scrollTo(0, part.offsetTop - 60)")
        page.wait_for_timeout(800)
        shoot(page, "report-compare")
    with opened(browser, healthy.as_uri(), viewport={"width": 720, "height": 1018}) as page:
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.wait_for_timeout(800)
        shoot(page, "report-print")


def watching(browser: Browser, root: Path) -> None:
    """The list of the runs, one of which trains meanwhile."""
    words = ["train", "resnet-56", "--data", "digits", "--steps", "2000", "--probes", "light", "--out", str(root)]
    server = subprocess.Popen([*COMMAND, "watch", str(root), "--port", "0"], stdout=subprocess.PIPE, text=True)
    growing = subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        context = browser.new_context(viewport={"width": 1280, "height": 620})
        page = context.new_page()
        page.goto(address)
        page.wait_for_function(
            "() => [...document.querySelectorAll('tbody .verdict')].every((verdict) => verdict.textContent)"
            " && document.querySelector('[data-state=growing] .course polyline')",
            timeout=120_000,
        )
        page.wait_for_timeout(8000)
        page.locator(".folder").evaluate("(folder) => (folder.textContent = 'runs')")
        shoot(page, "watch")
        context.close()
    finally:
        growing.kill()
        server.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "runs"
        folders = {name: trained(root, name) for name in NETS}
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(SWITCHES))
        reports(browser, folders, proved(root), Path(temporary))
        watching(browser, root)
        browser.close()


if __name__ == "__main__":
    main()
