"""The page where something is wrong: it says in one line what happened and what to do, and is never blank."""

import re
import secrets
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from desk import Desk, desk, skip_without_library
from letters import QUESTION
from playwright.sync_api import Browser, expect

from hgmem import Document, HGMem, Settings
from hgmem.client.serving import ServiceStore

HOSTILE = """</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">
<a href="javascript:window.hacked = 3">a</a> <svg onload="window.hacked = 4"> {{files}} <!-- \u202e"""
GOES_ON = threading.Event()
ONE_DRAWS_NOT = "HTMLCanvasElement.prototype.getContext = () => null;"
NO_WEBGL = """
const own = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
  return kind.startsWith("webgl") ? null : own.call(this, kind, ...more);
};
"""


def waits(*_: object) -> None:
    GOES_ON.wait(90)


@pytest.fixture(scope="module")
def shown(settings: Settings, chromium: Browser) -> Iterator[Desk]:
    skip_without_library()
    with HGMem.open("page-trouble", **settings.model_dump(exclude_none=True)) as client:
        with desk(client, chromium, keys=True, replies={"answer": waits}) as opened:
            yield opened
        client.delete()


@pytest.fixture(autouse=True)
def closing(shown: Desk) -> Iterator[None]:
    GOES_ON.set()
    yield
    GOES_ON.set()
    shown.close()


def stored(desk: Desk, owner: str = "anna", **options: object) -> str:
    return desk.client.ask(QUESTION, **{"system": "hgmem", "steps": 1, "owner": owner, **options}).memory


# Keys -----------------------------------------------------------------------------------------------------------


def test_a_key_is_asked_for_and_a_wrong_one_is_told(shown: Desk) -> None:
    tab = shown.page(f"/c/{shown.corpus}")
    tab.get_by_label("Key", exact=True).fill("hgm_wrong")
    tab.get_by_role("button", name="Log in").click()
    expect(tab.get_by_role("alert")).to_contain_text("this key is not known")
    tab.get_by_label("Key", exact=True).fill(shown.keys["anna"][0])
    tab.get_by_role("button", name="Log in").click()
    expect(tab.get_by_role("heading", name=f"Ask {shown.corpus}")).to_be_visible()
    assert tab.evaluate("JSON.stringify(localStorage) + document.cookie").find("hg") == -1
    tab.get_by_role("button", name="Log out").click()
    expect(tab.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_session_that_is_over_asks_for_the_key_again(shown: Desk) -> None:
    tab = shown.logged_in("anna", f"/c/{shown.corpus}")
    expect(tab.get_by_role("heading", name=f"Ask {shown.corpus}")).to_be_visible()
    tab.wait_for_load_state("networkidle")  # else one of its requests may meet the end of the session first
    tab.context.clear_cookies()
    tab.get_by_role("link", name="Memories").click()
    expect(tab.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_key_that_may_not_write_or_ask_is_offered_neither(shown: Desk) -> None:
    token, key = ServiceStore(shown.client).make_key("reader", scopes=["read"], corpora=[shown.corpus])
    shown.keys["reader"] = token, key
    tab = shown.logged_in("reader", f"/c/{shown.corpus}/documents")
    expect(tab.get_by_role("link", name="Letters")).to_be_visible()
    expect(tab.get_by_text("Add files")).to_have_count(0)
    expect(tab.get_by_role("button", name="Delete")).to_have_count(0)
    expect(tab.get_by_role("link", name="Ask", exact=True)).to_have_count(0)


# Memories -------------------------------------------------------------------------------------------------------


def test_a_memory_of_another_owner_is_not_there(shown: Desk) -> None:
    tab = shown.logged_in("ben", f"/m/{stored(shown)}")
    expect(tab.locator("main")).to_contain_text("not found")
    expect(tab.get_by_role("button", name="Try again")).to_be_visible()


def test_a_pruned_memory_shows_its_answers_alone(shown: Desk) -> None:
    memory = stored(shown)
    time.sleep(1.1)
    shown.client.prune(older_than=timedelta(seconds=1), keep_answers=True)
    tab = shown.logged_in("anna", f"/m/{memory}")
    expect(tab.locator("#about")).to_contain_text(
        "Pruned: its answers alone are kept; its steps, points and evidence were"
    )
    expect(tab.locator("#answer")).to_contain_text("Anna sold the mill")
    expect(tab.get_by_label("Further question")).to_have_count(0)
    expect(tab.get_by_role("button", name="Fork here")).to_have_count(0)


def test_a_memory_that_is_answered_elsewhere_is_watched(shown: Desk) -> None:
    GOES_ON.clear()
    token = shown.keys["anna"][0]

    def elsewhere() -> None:
        with shown.service.http(token) as http:
            http.post(f"/corpora/{shown.corpus}/questions", json={"question": "Who rows?", "steps": 1})

    asking = threading.Thread(target=elsewhere)
    asking.start()
    tab = shown.logged_in("anna", f"/c/{shown.corpus}/memories")
    tab.reload()
    tab.get_by_role("link", name="Who rows?").click()
    expect(tab.locator("#about")).to_contain_text("Being answered")
    GOES_ON.set()
    expect(tab.locator("#answer")).to_contain_text("Anna sold it")
    asking.join()


def test_a_memory_that_another_tab_deletes_offers_nothing_more(shown: Desk) -> None:
    for pressed in ("Fork here", "Ask"):
        memory = stored(shown)
        tab = shown.logged_in("anna", f"/m/{memory}")
        tab.get_by_label("Further question").fill("And who left?")
        shown.client.delete(memory=memory)
        tab.get_by_role("button", name=pressed, exact=True).click()
        expect(tab.get_by_role("alert")).to_contain_text("This memory was deleted meanwhile.")
        for offer in ("Fork here", "Delete", "Ask"):
            expect(tab.get_by_role("button", name=offer, exact=True)).to_have_count(0)
        expect(tab.get_by_role("link", name="Other memories")).to_be_visible()
        expect(tab.locator("#answer")).to_contain_text("Anna sold")


def test_a_question_that_is_refused_stays_in_its_field_and_at_its_address(shown: Desk) -> None:
    shown.keys["once"] = ServiceStore(shown.client).make_key("once", corpora=[shown.corpus], questions_per_minute=1)
    tab = shown.logged_in("once", f"/c/{shown.corpus}")
    shown.ask(tab, QUESTION)
    expect(tab.locator("#further")).to_be_visible()
    for place in (tab.url, f"{shown.service.address}/#/c/{shown.corpus}"):
        tab.goto(place)
        field = tab.locator("#asked")
        field.fill("And who left the harbour?")
        tab.get_by_role("button", name="Ask", exact=True).click()
        expect(tab.get_by_role("alert")).to_contain_text("this key is limited to 1 questions a minute")
        expect(field).to_have_value("And who left the harbour?")
        assert tab.url == place


@pytest.mark.parametrize(
    "place", ["/c/page-nowhere", "/c/page-trouble/documents/none", "/c/page-trouble/entities/none"]
)
def test_a_wrong_address_names_the_way_on_the_page(shown: Desk, place: str) -> None:
    tab = shown.logged_in("root", place)
    expect(tab.locator("main")).to_contain_text(re.compile("not found|has no document"))
    expect(tab.locator("main")).not_to_contain_text("`hgmem")
    way = "All corpora" if "nowhere" in place else "Memories of the corpus"
    tab.get_by_role("link", name=way).click()
    expect(tab.get_by_role("heading", name=way.split()[0] if "nowhere" not in place else "Corpora")).to_be_visible()


# Text of documents ----------------------------------------------------------------------------------------------


def test_markup_in_documents_is_text_wherever_it_is_shown(shown: Desk) -> None:
    shown.client.add([Document(id="hostile", title=f"Title {HOSTILE}", text=f"Anna {HOSTILE} of the Harbour. " * 3)])
    memory = stored(shown, system="naive")
    tab = shown.logged_in("root", f"/c/{shown.corpus}/documents")
    expect(tab.get_by_role("link", name="onerror")).to_be_visible()
    tab.get_by_role("link", name="onerror").click()
    expect(tab.locator(".reading")).to_contain_text("window.hacked = 2")
    for place in (f"/c/{shown.corpus}", f"/c/{shown.corpus}/entities", f"/m/{memory}", f"/c/{shown.corpus}/memories"):
        tab.goto("about:blank")  # else the screen before might still be there
        tab.goto(f"{shown.service.address}/#{place}")
        expect(tab.locator("h1")).not_to_have_text("")
        for summary in tab.locator("main summary:visible").all():
            summary.click()
    assert tab.evaluate("window.hacked") is None
    assert (
        tab.evaluate("document.querySelectorAll('main :is(img, svg, iframe, script, a[href^=javascript])').length") == 0
    )
    shown.client.delete(document="hostile")


def test_the_policy_refuses_scripts_and_styles_that_are_not_files_of_the_host(shown: Desk) -> None:
    tab = shown.page()
    expect(tab.get_by_role("heading", name="Log in")).to_be_visible()
    tab.evaluate("""() => {
      const script = document.createElement("script");
      try { script.textContent = "window.hacked = 1"; } catch { /* a text that is not trusted */ }
      const style = document.createElement("style");
      style.textContent = "body { display: none; }";
      document.head.append(script, style);
    }""")
    assert tab.evaluate("window.hacked") is None
    assert tab.evaluate("getComputedStyle(document.body).display") != "none"
    shown.wrong[:] = [said for said in shown.wrong if "Content Security Policy" not in said and "Trusted" not in said]


# Browsers, and a service that goes away --------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "draws"), [(NO_WEBGL, True), (ONE_DRAWS_NOT, False)], ids=["webgl", "canvas"])
def test_without_webgl_or_a_canvas_the_lists_have_everything(shown: Desk, before: str, draws: bool) -> None:
    memory = stored(shown)
    tab = shown.logged_in("anna", f"/m/{memory}", before=before)
    said = tab.get_by_text("This browser does not draw pictures here")
    expect(said).to_be_hidden() if draws else expect(said).to_be_visible()
    points = shown.client.memory(memory).points
    if draws:
        tab.get_by_text(f"All {len(points)} points").click()
    for point in points:
        expect(tab.locator("#points").get_by_role("link", name=point.description)).to_be_visible()
    tab.locator("#points").get_by_role("link", name=points[0].description).click()
    expect(tab.locator("#chosen")).to_contain_text(points[0].entities[0].name)


def test_a_corpus_that_is_deleted_while_it_is_watched_is_told(shown: Desk) -> None:
    corpus = f"t{secrets.token_hex(4)}"
    shown.client.add([Document(id="one", text="Anna sold the mill to Bo.")], corpus=corpus)
    GOES_ON.clear()
    tab = shown.logged_in("root", f"/c/{corpus}")
    shown.ask(tab, QUESTION)
    expect(tab.locator("#at")).to_contain_text("Step 1")
    shown.client.delete(corpus=corpus)
    GOES_ON.set()
    expect(tab.get_by_role("alert")).to_contain_text("it was deleted")
    expect(tab.get_by_role("button", name="Ask again")).to_be_visible()
    tab.get_by_role("link", name="Documents").click()
    expect(tab.locator("main")).to_contain_text(f"Corpus {corpus} is new")


def test_ten_tabs_ask_at_once(shown: Desk) -> None:
    tabs = [shown.logged_in("anna", f"/c/{shown.corpus}")]
    tabs += [shown.tab(tabs[0].context, f"/c/{shown.corpus}") for _ in range(9)]
    for number, tab in enumerate(tabs):
        shown.ask(tab, f"Who sold the mill of tab {number}?")
    for number, tab in enumerate(tabs):
        tab.bring_to_front()
        expect(tab.locator("#about")).to_contain_text("Answered", timeout=120_000)
        expect(tab.locator("h1")).to_have_text(f"Who sold the mill of tab {number}?")


def test_a_service_that_goes_away_while_it_answers_is_told_with_the_remedy(
    settings: Settings, chromium: Browser
) -> None:
    with HGMem.open("page-gone", **settings.model_dump(exclude_none=True)) as client:
        with desk(client, chromium, keys=True, replies={"answer": waits}) as opened:
            GOES_ON.clear()
            tab = opened.logged_in("anna", "/c/page-gone")
            opened.ask(tab, QUESTION)
            expect(tab.locator("#step")).to_contain_text("Point 0 of step 1.")
            opened.service.kill()
            expect(tab.get_by_role("alert")).to_contain_text("What was finished is stored: go on with this memory.")
            expect(tab.locator("#step")).to_contain_text("Point 0 of step 1.")
            tab.get_by_role("link", name="Entities").click()
            expect(tab.locator("main")).to_contain_text(
                "The service does not answer: see that it runs, then try again."
            )
            GOES_ON.set()
        client.delete()


# Files ----------------------------------------------------------------------------------------------------------


def test_of_several_files_each_is_taken_or_refused_and_a_failed_job_is_told_once_in_plain_words(
    shown: Desk, tmp_path: Path
) -> None:
    names = ("one.txt", "two.exe", "three.pdf", "four.txt")
    for name in names:
        (tmp_path / name).write_text(f"Farah keeps the keys of {name}.")
    tab = shown.logged_in("root", f"/c/{shown.corpus}/documents")
    tab.locator("#files").set_input_files([tmp_path / name for name in names])
    told = tab.locator(".adding [role=status]")
    expect(told).to_contain_text("Taken: one.txt, three.pdf, four.txt")
    expect(told.locator("li")).to_have_count(1)
    expect(told.locator("li")).to_contain_text("two.exe was refused: suffix '.exe' is not supported")
    row = tab.locator(".jobs li", has_text="three.pdf")
    expect(row).to_contain_text("failed")
    text = row.inner_text()
    assert text.count("three.pdf") == 1
    assert not re.search(r"\w(Error|Exception)\b", text)
    name = row.get_by_text("Indexing three.pdf").bounding_box()
    assert name
    assert name["height"] < 40
    for done in ("one", "four"):
        expect(tab.get_by_role("link", name=done, exact=True)).to_be_visible()
        shown.client.delete(document=f"{done}.txt")


def test_a_failed_job_stays_until_it_is_dismissed_or_its_file_is_indexed(shown: Desk, tmp_path: Path) -> None:
    def send(name: str, text: str, state: str) -> None:
        (tmp_path / name).write_text(text)
        tab.locator("#files").set_input_files(tmp_path / name)
        expect(tab.locator(".jobs li", has_text=name).locator(f".{state}")).to_be_visible()

    tab = shown.logged_in("root", f"/c/{shown.corpus}/documents")
    failed = tab.locator(".jobs li", has=tab.locator(".failed"), has_text=re.compile("lost|other"))
    send("lost.pdf", "none", "failed")
    send("other.csv", "", "failed")
    for name in ("one", "two", "three", "four"):
        send(f"{name}.txt", f"Farah keeps the keys of {name}.", "done")
    tab.reload()
    expect(failed).to_have_count(2)
    expect(tab.locator(".jobs .done")).to_have_count(3)
    expect(failed.filter(has_text="lost.pdf")).to_contain_text("damaged")
    failed.filter(has_text="lost.pdf").get_by_role("button", name="Dismiss").click()
    expect(failed).to_have_count(1)
    tab.reload()
    expect(failed).to_have_count(1)
    send("other.csv", "name,keeps\nFarah,keys", "done")
    expect(failed).to_have_count(0)
    shown.client.delete(document=[str(one["uid"]) for one in shown.client.documents() if one["title"] != "Letters"])


def test_files_have_their_types_are_kept_and_nothing_else_is_served(shown: Desk) -> None:
    with shown.service.http() as http:
        home = http.get("/")
        assert home.headers["content-type"] == "text/html; charset=utf-8"
        assert home.headers["cache-control"] == "no-cache"
        assert "script-src 'self'; style-src 'self'" in home.headers["content-security-policy"]
        script = home.text.partition('type="module" src="')[2].partition('"')[0]
        prefix = script.removesuffix("service/main.js")
        for name, kind in (
            ("service/main.js", "javascript"),
            ("shared/look.css", "css"),
            ("library/cytoscape.min.js", "javascript"),
        ):
            file = http.get(prefix + name)
            assert (file.status_code, kind in file.headers["content-type"]) == (200, True)
            assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
        refused: list[httpx.Response] = [
            http.get(prefix + name, follow_redirects=True)
            for name in ("service/index.html", "library/LICENSE", "../pages.py", "%2e%2e/look.css", "shared/none.js")
        ]
        assert {one.status_code for one in refused} == {404}
        old = http.get("/page/0123456789abcdef/service/main.js")
        assert (old.status_code, "load the page at / again" in old.json()["detail"]) == (404, True)
