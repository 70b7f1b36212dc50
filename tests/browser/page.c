/* The page of `penumbra serve` in a real browser: page URL WIDTH HEIGHT PICTURE SHOTS
 *
 * tests/cli/serve_page.sh serves what is asked for here: "photos", whose calibration makes some
 * hits likely, "plain", where nothing is, and "captions". PICTURE is a file of photos. */
#include <stdlib.h>
#include <string.h>

#include "tests/browser/driver.h"

static int n_checks, n_failed;

static void check(bool is, const char *what)
{
    n_checks++;
    if (is)
        return;
    n_failed++;
    printf("FAILED: %s\n", what);
}

#define HITS "document.querySelectorAll('#hits .hit').length"
#define STATUS "document.getElementById('status').textContent"
#define IMAGES                                                                                     \
    "[...document.querySelectorAll('#hits img')].every((i) => i.complete && i.naturalWidth > 0)"

/* Every text against what lies behind it: AA wants 4.5, of large letters 3. */
static const char contrast[] =
    "const rgb = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return [m[0], m[1], m[2], "
    "m.length > 3 ? m[3] : 1]; };"
    "const lum = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : "
    "((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };"
    "const behind = (e) => { for (; e; e = e.parentElement) { const c = "
    "rgb(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255]; "
    "};"
    "const bad = [];"
    "const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);"
    "while (walk.nextNode()) { const e = walk.currentNode.parentElement;"
    "  if (!walk.currentNode.textContent.trim() || ['SCRIPT', 'STYLE', "
    "'OPTION'].includes(e.tagName) "
    "|| e.namespaceURI.endsWith('svg') || !e.checkVisibility()) continue;"
    "  const s = getComputedStyle(e), a = lum(rgb(s.color)), b = lum(behind(e));"
    "  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);"
    "  const large = parseFloat(s.fontSize) >= 24 || (parseFloat(s.fontSize) >= 18.66 && "
    "s.fontWeight >= 600);"
    "  if (ratio < (large ? 3 : 4.5)) bad.push(walk.currentNode.textContent.trim() + ' ' + "
    "ratio.toFixed(2)); }"
    "return bad.join('; ');";

/* What has no name for a screen reader, no label, no alternative text; ids that are there twice. */
static const char unnamed[] =
    "const bad = [];"
    "for (const e of document.querySelectorAll('input, select, button, a, img, svg[role], "
    "[role=meter], ol')) { if (!e.checkVisibility()) continue;"
    "  const label = e.id && document.querySelector('label[for=\"' + e.id + '\"]');"
    "  const name = e.getAttribute('aria-label') || e.getAttribute('alt') || e.textContent.trim() "
    "|| "
    "(label && label.textContent.trim()) || (e.closest('label') && "
    "e.closest('label').textContent.trim());"
    "  if (!name) bad.push(e.outerHTML.slice(0, 80)); }"
    "const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);"
    "for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) bad.push('twice: ' + id);"
    "return bad.join('; ');";

static void check_empty(driver *d, const char *script, const char *what)
{
    char text[600];
    driver_text(d, script, text, sizeof text);
    check(text[0] == '\0', what);
    if (text[0] != '\0')
        printf("  %s\n", text);
}

/* Names, contrast in both schemes, width; and a picture of each for who looks. */
static void look(driver *d, const char *shots, int width, const char *name)
{
    static const char *const schemes[] = {"light", "dark"};
    char path[400];
    for (int dark = 0; dark < 2; dark++) {
        driver_dark(d, dark);
        snprintf(path, sizeof path, "%s/%d-%s-%s.png", shots, width, name, schemes[dark]);
        driver_shot(d, path);
        check_empty(d, contrast, "every text is readable");
    }
    driver_dark(d, false);
    check_empty(d, unnamed, "everything has a name");
    check(driver_is(d, "return document.documentElement.scrollWidth <= window.innerWidth"),
          "nothing reaches over the side");
}

static void search_by_text(driver *d, const char *shots, int width)
{
    driver_send(d, "#text", "a red star");
    driver_keys(d, "\n");
    check(driver_wait(d, "return " HITS " > 0"), "text finds hits");
    check(driver_is(d, "return [...document.querySelectorAll('#hits > *')].findIndex((e) => "
                       "e.className === 'line') === 5"),
          "the line stands below the fifth");
    check(driver_wait(d, "return " IMAGES), "their pictures are shown");
    check(driver_is(d, "const m = [...document.querySelectorAll('#hits [role=meter]')].map((e) => "
                       "Number(e.getAttribute('aria-valuenow'))); return m.length === " HITS
                       " && m.every((p, i) => p >= 0 && p <= 1 && (i === 0 || p <= m[i - 1]))"),
          "every hit has its p(match), falling");
    check(driver_is(d, "return document.querySelectorAll('#hits .line').length === 1 && "
                       "document.querySelector('#hits .line').textContent.includes('1 in 20')"),
          "one line says where confidence ends");
    check(driver_is(d, "return " STATUS ".includes('above the line')"), "the status says it too");
    check(driver_is(d,
                    "return /(query has the uncertainty|query is (clear|ordinary|broad|vague)): ?/"
                    ".test(document.querySelector('.query-words').textContent)"),
          "the query's uncertainty stands there in words");
    check(driver_is(d, "return location.hash === '#q=a%20red%20star'"), "the address keeps it");
    driver_js(d, "document.getElementById('plane').open = true", NULL);
    check(
        driver_is(d, "return document.querySelectorAll('#plane ellipse').length === " HITS " + 1"),
        "query and hits have ellipses");
    look(d, shots, width, "text");
}

static void related_texts(driver *d)
{
    check(driver_is(d, "return document.querySelectorAll('#related a').length > 0"),
          "captions are offered as links");
    driver_js(d, "document.querySelector('#related a').click()", NULL);
    check(driver_wait(d, "return document.getElementById('text').value !== 'a red star' && "
                         "location.hash.startsWith('#q=') && !" STATUS ".includes('Searching')"),
          "a link searches for its caption");
}

static void no_good_result(driver *d, const char *shots, int width)
{
    driver_js(d,
              "const c = document.getElementById('collection'); c.value = 'plain'; "
              "c.dispatchEvent(new Event('change'))",
              NULL);
    check(driver_wait(d, "const v = document.querySelector('.verdict.none'); return v !== null && "
                         "v.textContent.includes('No good result')"),
          "no good result is said");
    check(driver_is(d, "return " HITS " === 0 && " STATUS " === 'No good result.'"),
          "and nothing is shown as one");
    look(d, shots, width, "none");
    driver_js(d, "document.getElementById('all-the-same').click()", NULL);
    check(driver_is(d, "return " HITS " > 0"), "the nearest can be seen all the same");
}

static void drop_a_image(driver *d, const char *image, const char *shots, int width)
{
    char *bytes = NULL, script[400];
    size_t n = 0;
    pnb__buf text = {0};
    if (pnb__read_file(image, 1 << 22, &bytes, &n, NULL) != PNB_OK)
        exit(1);
    pnb__base64(&text, bytes, n);
    driver_js(d, "const c = document.getElementById('collection'); c.value = 'photos';", NULL);
    json_decref(driver_js(
        d,
        "const b = Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0));"
        "const t = new DataTransfer(); t.items.add(new File([b], 'a.png', {type: 'image/png'}));"
        "for (const kind of ['dragenter', 'dragover', 'drop']) document.body.dispatchEvent(new "
        "DragEvent(kind, {dataTransfer: t, bubbles: true, cancelable: true}));",
        json_pack("[s]", text.data)));
    snprintf(script, sizeof script,
             "const h = document.querySelector('#hits .caption'); return h !== null && "
             "!document.getElementById('asked').hidden && h.textContent === '%s'",
             pnb__path_base(image));
    check(driver_wait(d, script), "a picture that is dropped finds itself first");
    check(driver_is(d, "return document.getElementById('drop').hidden"), "the drop zone is gone");
    look(d, shots, width, "picture");
    json_decref(driver_js(
        d,
        "const t = new DataTransfer(); t.items.add(new File(['x'], 'a.txt', {type: "
        "'text/plain'})); document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: t, "
        "bubbles: true, cancelable: true}));",
        NULL));
    check(driver_is(d, "return document.getElementById('problem').textContent === 'That is no "
                       "picture.'"),
          "what is no picture is told");
    driver_send(d, "#picture", image);
    check(driver_wait(d, script), "one that is chosen does too");
    pnb__buf_reset(&text);
    pnb__free(bytes);
}

/* From the top of the page with Tab, Enter and letters alone. */
static void keyboard_only(driver *d, const char *url)
{
    char at[40];
    bool found = false, seen = true;
    driver_go(d, "about:blank");
    driver_go(d, url);
    driver_wait(d, "return document.getElementById('model').textContent !== ''");
    for (int i = 0; i < 8 && !found; i++) {
        driver_keys(d, "\t");
        driver_text(d, "return document.activeElement.id", at, sizeof at);
        seen = seen && driver_is(d, "return getComputedStyle(document.activeElement).outlineStyle "
                                    "!== 'none'");
        found = strcmp(at, "text") == 0;
    }
    check(found, "Tab comes to the field");
    check(seen, "the focus is always seen");
    driver_keys(d, "a red star\n");
    check(driver_wait(d, "return " HITS " > 0"), "Enter searches");
    found = false;
    for (int i = 0; i < 20 && !found; i++) {
        driver_keys(d, "\t");
        found = driver_is(d, "return document.activeElement.className === 'like'");
    }
    check(found, "Tab comes to a hit");
    driver_keys(d, "\n");
    check(driver_wait(
              d, "return location.hash === '#q=a%20red%20star' && document.getElementById('text')"
                 ".value === '' && " HITS " > 0"),
          "Enter finds more like it");
}

static void browse_and_health(driver *d, const char *shots, int width)
{
    static const char *const orders[] = {"certain", "uncertain", "outliers", "duplicates",
                                         "newest"};
    char script[300];
    driver_js(d, "document.getElementById('to-browse').click()", NULL);
    for (size_t i = 0; i < PNB_COUNT(orders); i++) {
        snprintf(script, sizeof script,
                 "const b = document.getElementById('by'); b.value = '%s'; b.dispatchEvent(new "
                 "Event('change'))",
                 orders[i]);
        driver_js(d, script, NULL);
        check(driver_wait(d,
                          "const t = document.getElementById('browse-status').textContent; return "
                          "t !== '' && !t.includes('Looking') && (t.includes('No near') || "
                          "document.querySelectorAll('#browse-result .hit').length > 0)"),
              orders[i]);
    }
    look(d, shots, width, "browse");
    driver_js(d, "document.getElementById('to-health').click()", NULL);
    check(driver_wait(d, "return document.querySelectorAll('#figures dd').length === 7 && "
                         "document.querySelectorAll('.chart').length === 2 && "
                         "document.querySelectorAll('#routes tbody tr').length > 3"),
          "health has its figures");
    look(d, shots, width, "health");
}

static void nothing_else_was_asked(driver *d, const char *url)
{
    json_t *console = driver_log(d, "browser"), *log = driver_log(d, "performance"), *entry;
    size_t i, n = 0, n_own = 0;
    check(json_array_size(console) == 0, "the console is empty");
    json_array_foreach(console, i, entry)
        printf("  %s\n", json_string_value(json_object_get(entry, "message")));
    json_array_foreach(log, i, entry)
    {
        static const char key[] = "\"request\":{", sent[] = "\"Network.requestWillBeSent\"";
        const char *text = json_string_value(json_object_get(entry, "message"));
        const char *at = strstr(text, sent) != NULL ? strstr(text, key) : NULL;
        at = at != NULL ? strstr(at, "\"url\":\"") : NULL;
        if (at == NULL)
            continue;
        at += strlen("\"url\":\"");
        bool is_own = strncmp(at, url, strlen(url)) == 0 || strncmp(at, "data:", 5) == 0 ||
                      strncmp(at, "blob:", 5) == 0 || strncmp(at, "about:", 6) == 0 ||
                      strncmp(at, "chrome:", 7) == 0; /* the tab before it went anywhere */
        n++;
        n_own += is_own;
        if (!is_own)
            printf("  %.200s\n", at);
    }
    check(n > 10 && n_own == n, "no request went anywhere else");
    json_decref(console);
    json_decref(log);
}

int main(int argc, char **argv)
{
    driver d;
    if (argc != 6) {
        fprintf(stderr, "usage: page URL WIDTH HEIGHT PICTURE SHOTS\n");
        return 2;
    }
    const char *url = argv[1], *image = argv[4], *shots = argv[5];
    int width = atoi(argv[2]);
    driver_start(&d, width, atoi(argv[3]));
    driver_go(&d, url);
    check(driver_wait(&d, "return document.querySelectorAll('#collection option').length === 3"),
          "collections are listed");
    look(&d, shots, width, "begin");
    search_by_text(&d, shots, width);
    related_texts(&d);
    no_good_result(&d, shots, width);
    drop_a_image(&d, image, shots, width);
    browse_and_health(&d, shots, width);
    keyboard_only(&d, url);
    nothing_else_was_asked(&d, url);
    driver_end(&d);
    printf("%d of %d checks passed at %d pixels\n", n_checks - n_failed, n_checks, width);
    return n_failed > 0;
}
