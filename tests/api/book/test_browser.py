"""The site in a real browser: loaded from files, looked at in light and dark, wide and narrow."""

import shutil
from pathlib import Path

import pytest

from isoform.book import documents, folder
from isoform.book.contents import page_of

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install 'isoform[browser]'")
BROWSER, DRIVER = (next(filter(None, map(shutil.which, names)), None) for names in (("chromium", "google-chrome"), ("chromedriver",)))
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not on the path")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
LOOKED_AT = ("index.html", "graph.html", page_of("delta-rule/unrolled"), page_of("mamba/discretization"), page_of("delta-rule"))
LOOKED_AT += tuple(f"{name}.html" for name in documents.there())
BOXES = "return [...document.querySelectorAll('math')].map(m => { const b = m.getBoundingClientRect(); return [b.width, b.height]; })"
WIDE = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data]; };
const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; }
  return null; };
const out = [];
for (const e of document.querySelectorAll("body *")) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length || e.closest("svg, noscript")) continue;
  const ground = behind(e), [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground)];
  out.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + ": " + e.textContent.trim().slice(0, 40)]);
}
return out;
"""


@pytest.fixture(scope="module")
def home(files, tmp_path_factory):
    target = folder.reserve(tmp_path_factory.mktemp("site"))
    folder.replace(target, files)
    return target


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def load(browser, home):
    """Load a page of the site in a window of some width, in a colour scheme."""

    def load(name, width=1280, scheme="light"):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        browser.get((Path(home) / name).as_uri())
        return browser

    return load


def test_every_page_loads_with_visible_formulas_and_no_complaint(load, browser, files):
    browser.get_log("browser")
    for name in (name for name in files if name.endswith(".html")):
        page = load(name)
        assert page.find_elements("css selector", "main h1"), name
        boxes = page.execute_script(BOXES)
        assert all(w > 0 and h > 0 for w, h in boxes), name
        assert boxes or "claims/" not in name
    assert browser.get_log("browser") == []


def test_a_complaint_would_be_seen(load, browser):
    load("index.html").execute_script("console.error('seen')")
    assert any("seen" in entry["message"] for entry in browser.get_log("browser"))


@pytest.mark.parametrize("name", LOOKED_AT)
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_page_scrolls_sideways(load, name, width):
    whole, seen = load(name, width).execute_script(WIDE)
    assert whole <= seen == width


def test_a_page_that_scrolls_sideways_would_be_seen(load):
    page = load("index.html", 390)
    page.execute_script("document.querySelector('h1').style.width = '500px'")
    whole, seen = page.execute_script(WIDE)
    assert whole > seen


@pytest.mark.parametrize("name", LOOKED_AT)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast(load, name, scheme):
    found = load(name, scheme=scheme).execute_script(CONTRASTS)
    assert len(found) > 20
    assert [(ratio, text) for ratio, text in found if ratio < 4.5] == []


def test_dark_is_dark_and_text_without_contrast_would_be_seen(load):
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert load("index.html").execute_script(ground) != load("index.html", scheme="dark").execute_script(ground)
    page = load("index.html", scheme="dark")
    page.execute_script("document.querySelector('h1').style.color = '#444'")
    assert min(page.execute_script(CONTRASTS))[0] < 4.5


def test_the_search_finds_a_claim_and_leads_to_it(load):
    page = load(page_of("mamba/discretization"))
    box = page.find_element("id", "search")
    box.send_keys("delta unrolled")
    found = page.find_elements("css selector", "#found a")
    assert found[0].text.splitlines()[0] == "delta-rule/unrolled" and found[0].is_displayed()
    assert page.find_element("id", "count").text == f"{len(found)} found"
    found[0].click()
    assert page.current_url.endswith("claims/delta-rule/unrolled.html")
    assert "The state is the sum of the writes" in page.find_element("css selector", "h1").text


def test_the_search_finds_nothing_where_nothing_is(load):
    page = load("index.html")
    page.find_element("id", "search").send_keys("zzz")
    assert page.find_elements("css selector", "#found a") == [] and page.find_element("id", "count").text == "0 found"


def test_the_keyboard_reaches_the_search_and_its_results(load):
    from selenium.webdriver.common.keys import Keys

    page = load("index.html")
    page.find_element("css selector", "body").send_keys("/")
    assert page.switch_to.active_element.get_attribute("id") == "search"
    page.switch_to.active_element.send_keys("mamba")
    page.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert page.switch_to.active_element.text.splitlines()[0] == "mamba"
    outline = page.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not page.find_element("id", "found").is_displayed()


def test_links_lead_to_pages_that_the_browser_finds(load, home):
    page = load(page_of("delta-product/interleaved"))
    links = page.execute_script("return [...document.querySelectorAll('main a')].map(a => a.href)")
    assert len(links) > 3
    for link in dict.fromkeys(links):
        page.get(link)
        assert page.title and "isoform" in page.title
