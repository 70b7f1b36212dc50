/* WebDriver by libcurl: https://www.w3.org/TR/webdriver2/, a request and a JSON value each.
 *
 * chromedriver chooses its port and says it on its standard output. As root chromium runs without
 * its sandbox only; what it would ask the network for by itself is switched off, so that what is
 * left in its log is the page's. */
#include "tests/browser/driver.h"

#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ELEMENT                                                                                    \
    "element-6066-11e4-a52e-4f735466cecf" /* the key that the protocol gives elements              \
                                           */

static _Noreturn void fail(driver *d, const char *what, const char *why)
{
    fprintf(stderr, "FAILED: %s: %s\n", what, why);
    driver_end(d);
    exit(1);
}

static void pause_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

/* ---- requests ---- */

static size_t take(char *data, size_t size, size_t n, void *user)
{
    pnb__buf_append(user, data, size * n);
    return size * n;
}

/* The reply; NULL: there was none. */
static json_t *request(driver *d, const char *method, const char *path, const json_t *body)
{
    char url[400];
    pnb__buf sent = {0}, got = {0};
    json_t *reply = NULL;
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    snprintf(url, sizeof url, "%s%s", d->base, path);
    pnb__json_append_value(&sent, body);
    curl_easy_reset(d->curl);
    curl_easy_setopt(d->curl, CURLOPT_URL, url);
    curl_easy_setopt(d->curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(d->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(d->curl, CURLOPT_TIMEOUT, 120L);
    curl_easy_setopt(d->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(d->curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(d->curl, CURLOPT_WRITEDATA, &got);
    curl_easy_setopt(d->curl, CURLOPT_HTTPHEADER, headers);
    if (body != NULL)
        curl_easy_setopt(d->curl, CURLOPT_POSTFIELDS, sent.data);
    if (curl_easy_perform(d->curl) == CURLE_OK && got.data != NULL)
        (void)pnb__json_load_bytes(&reply, got.data, got.size, "reply", NULL);
    curl_slist_free_all(headers);
    pnb__buf_reset(&sent);
    pnb__buf_reset(&got);
    return reply;
}

static json_t *value_of(driver *d, const char *what, json_t *reply)
{
    json_t *value = json_object_get(reply, "value");
    const char *error = json_string_value(json_object_get(value, "error"));
    if (reply == NULL)
        fail(d, what, "chromedriver does not answer");
    if (error != NULL) {
        const char *message = json_string_value(json_object_get(value, "message"));
        fail(d, what, message != NULL ? message : error);
    }
    json_incref(value);
    json_decref(reply);
    return value;
}

json_t *driver_ask(driver *d, const char *method, const char *path, json_t *body)
{
    char whole[200];
    snprintf(whole, sizeof whole, "/session/%s%s", d->session, path);
    json_t *reply = request(d, method, whole, body);
    json_decref(body);
    return value_of(d, path, reply);
}

/* ---- from start to end ---- */

/* The port that chromedriver says it listens at; 0: it said none. */
static int read_port(FILE *f)
{
    static const char words[] = "successfully on port ";
    char line[400];
    while (fgets(line, sizeof line, f) != NULL) {
        const char *at = strstr(line, words);
        if (at != NULL)
            return atoi(at + sizeof words - 1);
    }
    return 0;
}

static void start_process(driver *d)
{
    int ends[2];
    if (pipe(ends) != 0)
        fail(d, "pipe", "failed");
    d->process = fork();
    if (d->process == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execlp("chromedriver", "chromedriver", "--port=0", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    int port = f != NULL ? read_port(f) : 0;
    if (port == 0) {
        int status = 0;
        waitpid(d->process, &status, 0);
        d->process = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
            printf("skipped: chromium-driver is not installed\n");
            exit(77);
        }
        fail(d, "chromedriver", "did not start");
    }
    snprintf(d->base, sizeof d->base, "http://127.0.0.1:%d", port);
}

static json_t *capabilities(const driver *d, int width, int height)
{
    char profile[100], size[40];
    snprintf(profile, sizeof profile, "--user-data-dir=%s", d->folder);
    snprintf(size, sizeof size, "--window-size=%d,%d", width, height);
    json_t *args =
        json_pack("[sssssssssssss]", "--headless", "--no-sandbox", "--disable-gpu",
                  "--disable-quic", "--no-first-run", "--disable-background-networking",
                  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
                  "--no-proxy-server", "--hide-scrollbars", profile, size);
    json_t *options = json_pack("{s:o}", "args", args);
    if (width < 500)
        json_object_set_new(options, "mobileEmulation",
                            json_pack("{s:{s:i,s:i,s:f}}", "deviceMetrics", "width", width,
                                      "height", height, "pixelRatio", 1.0));
    return json_pack("{s:{s:{s:s,s:o,s:{s:s,s:s}}}}", "capabilities", "alwaysMatch", "browserName",
                     "chrome", "goog:chromeOptions", options, "goog:loggingPrefs", "browser", "ALL",
                     "performance", "ALL");
}

void driver_start(driver *d, int width, int height)
{
    *d = (driver){.curl = curl_easy_init()};
    snprintf(d->folder, sizeof d->folder, "/tmp/penumbra-browser-XXXXXX");
    if (d->curl == NULL || mkdtemp(d->folder) == NULL)
        fail(d, "start", "no curl, or no folder in /tmp");
    start_process(d);
    json_t *body = capabilities(d, width, height);
    json_t *reply = request(d, "POST", "/session", body);
    json_decref(body);
    const json_t *got = json_object_get(reply, "value");
    const char *message = json_string_value(json_object_get(got, "message"));
    if (message != NULL && strstr(message, "cannot find Chrome binary") != NULL) {
        printf("skipped: chromium is not installed\n");
        driver_end(d);
        exit(77);
    }
    got = value_of(d, "session", reply);
    snprintf(d->session, sizeof d->session, "%s",
             json_string_value(json_object_get(got, "sessionId")));
    json_decref((json_t *)got);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

void driver_end(driver *d)
{
    char path[120];
    snprintf(path, sizeof path, "/session/%s", d->session);
    if (d->session[0] != '\0')
        json_decref(request(d, "DELETE", path, NULL));
    d->session[0] = '\0';
    if (d->process > 0) {
        kill(d->process, SIGTERM);
        waitpid(d->process, NULL, 0);
    }
    d->process = 0;
    curl_easy_cleanup(d->curl);
    d->curl = NULL;
    if (d->folder[0] != '\0')
        nftw(d->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- what a test does ---- */

void driver_go(driver *d, const char *url)
{
    json_decref(driver_ask(d, "POST", "/url", json_pack("{s:s}", "url", url)));
}

void driver_dark(driver *d, bool dark)
{
    json_t *body =
        json_pack("{s:s,s:{s:[{s:s,s:s}]}}", "cmd", "Emulation.setEmulatedMedia", "params",
                  "features", "name", "prefers-color-scheme", "value", dark ? "dark" : "light");
    json_decref(driver_ask(d, "POST", "/goog/cdp/execute", body));
}

json_t *driver_js(driver *d, const char *script, json_t *args)
{
    return driver_ask(
        d, "POST", "/execute/sync",
        json_pack("{s:s,s:o}", "script", script, "args", args != NULL ? args : json_array()));
}

bool driver_is(driver *d, const char *script)
{
    json_t *value = driver_js(d, script, NULL);
    bool is = json_is_true(value);
    json_decref(value);
    return is;
}

long driver_number(driver *d, const char *script)
{
    json_t *value = driver_js(d, script, NULL);
    long n = json_is_number(value) ? (long)json_number_value(value) : -1;
    json_decref(value);
    return n;
}

void driver_text(driver *d, const char *script, char *out, size_t size)
{
    json_t *value = driver_js(d, script, NULL);
    const char *text = json_string_value(value);
    snprintf(out, size, "%s", text != NULL ? text : "");
    json_decref(value);
}

bool driver_wait(driver *d, const char *script)
{
    for (int i = 0; i < 200; i++) {
        if (driver_is(d, script))
            return true;
        pause_ms(100);
    }
    return false;
}

void driver_keys(driver *d, const char *keys)
{
    json_t *list = json_array();
    for (const char *at = keys; *at != '\0'; at++) {
        char key[5] = {*at, '\0'};
        if (*at == '\t') /* the protocol's own letters for keys */
            snprintf(key, sizeof key, "\xEE\x80\x84");
        if (*at == '\n')
            snprintf(key, sizeof key, "\xEE\x80\x87");
        json_array_append_new(list, json_pack("{s:s,s:s}", "type", "keyDown", "value", key));
        json_array_append_new(list, json_pack("{s:s,s:s}", "type", "keyUp", "value", key));
    }
    json_decref(driver_ask(d, "POST", "/actions",
                           json_pack("{s:[{s:s,s:s,s:o}]}", "actions", "type", "key", "id",
                                     "keyboard", "actions", list)));
}

void driver_send(driver *d, const char *css, const char *text)
{
    char path[200];
    json_t *found = driver_ask(d, "POST", "/element",
                               json_pack("{s:s,s:s}", "using", "css selector", "value", css));
    snprintf(path, sizeof path, "/element/%s/value",
             json_string_value(json_object_get(found, ELEMENT)));
    json_decref(found);
    json_decref(driver_ask(d, "POST", path, json_pack("{s:s}", "text", text)));
}

void driver_shot(driver *d, const char *path)
{
    json_t *body = json_pack("{s:s,s:{s:b}}", "cmd", "Page.captureScreenshot", "params",
                             "captureBeyondViewport", 1);
    json_t *value = driver_ask(d, "POST", "/goog/cdp/execute", body);
    const char *text = json_string_value(json_object_get(value, "data"));
    pnb__buf bytes = {0};
    size_t bad;
    if (text == NULL || !pnb__base64_decode(&bytes, text, strlen(text), &bad) ||
        pnb__write_file(path, bytes.data, bytes.size, NULL) != PNB_OK)
        fail(d, "screenshot", path);
    pnb__buf_reset(&bytes);
    json_decref(value);
}

json_t *driver_log(driver *d, const char *kind)
{
    return driver_ask(d, "POST", "/se/log", json_pack("{s:s}", "type", kind));
}
