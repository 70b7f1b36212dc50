/* A browser for tests: Debian's chromium, driven by chromium-driver over the WebDriver protocol. */
#ifndef TESTS_BROWSER_DRIVER_H
#define TESTS_BROWSER_DRIVER_H

#include <stdbool.h>
#include <sys/types.h>

#include <curl/curl.h>

#include "io/json/json.h"

typedef struct driver {
    CURL *curl;
    pid_t process;
    char base[64], session[80], folder[64];
} driver;

/* Starts chromedriver on a free port and a browser of a new profile. Ends the program where that
 * fails: with 77 where one of the two is not installed. */
void driver_start(driver *d, int width, int height);
void driver_end(driver *d);

/* A command of the session: its value, to be given back by json_decref. The program ends where the
 * browser refuses. `body` is taken; NULL: GET. */
json_t *driver_ask(driver *d, const char *method, const char *path, json_t *body);
void driver_go(driver *d, const char *url);
void driver_dark(driver *d, bool dark);
/* What a script returns; `args` is an array, taken, NULL for none. */
json_t *driver_js(driver *d, const char *script, json_t *args);
/* The same as truth, as a whole number, as a text of `size` bytes. */
bool driver_is(driver *d, const char *script);
long driver_number(driver *d, const char *script);
void driver_text(driver *d, const char *script, char *out, size_t size);
/* Whether a script comes to return something true within 20 seconds. */
bool driver_wait(driver *d, const char *script);
/* Keys pressed one after another, wherever the focus is; \t \n and letters. */
void driver_keys(driver *d, const char *keys);
/* Keys to an element, a file's path to one that takes files. */
void driver_send(driver *d, const char *css, const char *text);
/* The whole page as a PNG. */
void driver_shot(driver *d, const char *path);
/* What the browser noted since the last call: kind "browser" (its console) or "performance". */
json_t *driver_log(driver *d, const char *kind);

#endif
