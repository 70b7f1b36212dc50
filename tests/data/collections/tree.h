/* Small packages of our own: a folder like Open Clip Art's and one like Tux Paint's stamps. */
#ifndef PNB_TESTS_DATA_COLLECTIONS_TREE_H
#define PNB_TESTS_DATA_COLLECTIONS_TREE_H

#include <sys/stat.h>

#include "io/svg/svg_facts.h"
#include "penumbra/collections.h"
#include "penumbra/image.h"
#include "tests/data/fixture.h"

#define SVG_HEAD                                                                                   \
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"100\"><metadata>"            \
    "<r:RDF xmlns:r=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" "                              \
    "xmlns:cc=\"http://web.resource.org/cc/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">"      \
    "<cc:Work>"
#define SVG_TAIL "</svg>"

/* Skips where the build lacks librsvg. */
static inline void need_svg(void)
{
    if (pnb__svg_check(NULL) != PNB_OK) {
        print_message("skipped: needs librsvg2-dev libxml2-dev\n");
        skip();
    }
}

/* A drawing that no other number resembles: four bars whose places follow from `number`. */
static inline char *draw_shape(int number)
{
    pnb__buf b = {0};
    for (int k = 0; k < 4; k++) {
        int x = (number * 37 + k * 61) % 80, y = (number * 53 + k * 29) % 80;
        pnb__buf_printf(
            &b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\"/>", x, y,
            10 + (number * 7 + k) % 20, 10 + (number * 11 + k * 3) % 20,
            (number * 41 + k * 90) % 200, (number * 67 + k * 17) % 200,
            (number * 23 + k * 130) % 200);
    }
    assert_false(b.failed);
    return b.data;
}

static inline char *make_svg(const char *title, const char *creator, const char *keywords,
                             const char *shapes)
{
    pnb__buf b = {0};
    pnb__buf_puts(&b, SVG_HEAD);
    pnb__buf_printf(&b, "<dc:title>%s</dc:title><dc:creator>%s</dc:creator><dc:subject><r:Bag>",
                    title, creator);
    for (const char *p = keywords; *p;) {
        size_t n = strcspn(p, ",");
        pnb__buf_printf(&b, "<r:li>%.*s</r:li>", (int)n, p);
        p += n + (p[n] == ',');
    }
    pnb__buf_printf(&b, "</r:Bag></dc:subject></cc:Work></r:RDF></metadata>%s" SVG_TAIL, shapes);
    assert_false(b.failed);
    return b.data;
}

/* root/svg/NAME.svg and root/png/NAME.png, a square of the number's colour. */
static inline void put_drawing(const char *root, const char *name, const char *svg, int number)
{
    char *path = pnb__format("svg/%s.svg", name);
    put_file(root, path, svg, strlen(svg));
    pnb__free(path);
    path = pnb__format("%s/png/%s.png", root, name);
    char *folder = pnb__path_dir(path);
    pnb_image image;
    ASSERT_OK(pnb__make_dirs(folder, &err));
    ASSERT_OK(pnb_image_create(&image, 40, 40, 3, &err));
    memset(image.pixels, 255, 40 * 40 * 3);
    for (int y = 5; y < 30 && number >= 0; y++) /* a negative one stays white */
        for (int x = 5; x < 20; x++)
            memset(image.pixels + 3 * (40 * y + x), (number * 31 + x * 7) % 200, 3);
    ASSERT_OK(pnb_image_save_png(&image, path, &err));
    pnb_image_free(&image);
    pnb__free(folder);
    pnb__free(path);
}

static inline void put_clip(const char *root, const char *name, const char *title,
                            const char *creator, const char *keywords, int number)
{
    char *shapes = draw_shape(number), *svg = make_svg(title, creator, keywords, shapes);
    put_drawing(root, name, svg, number);
    pnb__free(svg);
    pnb__free(shapes);
}

/* 24 drawings of animals and food, one more name of the first, two copies, a star, an icon, a
 * church and what cannot be read. */
static inline char *make_clipart(const char *dir)
{
    static const char *const what[] = {"cat", "dog", "frog", "apple", "cake", "pear"};
    char *root = pnb__path_join(dir, "openclipart");
    for (int i = 0; i < 24; i++) {
        char name[64], title[64];
        bool is_food = i % 6 >= 3;
        snprintf(name, sizeof name, "%s/%s_%02d", is_food ? "food/fruit" : "animals", what[i % 6],
                 i);
        snprintf(title, sizeof title, i % 8 == 7 ? "Various Cliparts" : "A %s %02d", what[i % 6],
                 i);
        put_clip(root, name, title, "Ann Miller", is_food ? "food,tasty" : "animal,hash(0x1)", i);
    }
    put_clip(root, "animals/copy_01", "Twin", "Ann Miller", "animal", 3); /* of apple_03 */
    put_clip(root, "shapes/stars/star_1", "gramastar", "Bob", "star", 70);
    put_clip(root, "computer/icons/flat-theme/save", "Flat theme", "Bob", "icon", 71);
    put_clip(root, "recreation/religion/church", "Church", "Bob", "building", 72);
    put_drawing(root, "food/broken", "<svg><not closed", 73);
    put_drawing(root, "food/large",
                SVG_HEAD "<dc:title>Words</dc:title></cc:Work></r:RDF></metadata>"
                         "<text y=\"50\">words</text>" SVG_TAIL,
                74);
    put_drawing(root, "food/empty", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>", -1);
    char *from = pnb__path_join(root, "svg/food/cat_too.svg");
    assert_int_equal(symlink("../animals/cat_00.svg", from), 0);
    pnb__free(from);
    from = pnb__path_join(root, "svg/food/nowhere.svg");
    assert_int_equal(symlink("../../../outside.svg", from), 0);
    pnb__free(from);
    return root;
}

static inline void put_stamp_png(const char *root, const char *name, int number)
{
    char *path = pnb__path_join(root, name), *folder = pnb__path_dir(path);
    pnb_image image;
    ASSERT_OK(pnb__make_dirs(folder, &err));
    ASSERT_OK(pnb_image_create(&image, 30, 20, 4, &err));
    for (int i = 0; i < 600; i++) {
        unsigned char *p = image.pixels + 4 * i;
        p[0] = p[1] = p[2] = (unsigned char)((i * (number + 3)) % 251 / 2);
        p[3] = i % 30 < 6 + number ? 255 : 0;
    }
    ASSERT_OK(pnb_image_save_png(&image, path, &err));
    pnb_image_free(&image);
    pnb__free(folder);
    pnb__free(path);
}

static const char SIGN[] = "<svg xmlns=\"http://www.w3.org/2000/svg\"><text>a</text></svg>";

/* 10 photos, a drawing, one whose drawing has text, and a text alone. */
static inline char *make_stamps(const char *dir)
{
    char *root = pnb__path_join(dir, "stamps"), *shapes = draw_shape(90);
    char *svg = make_svg("", "", "", shapes);
    for (int i = 0; i < 10; i++) {
        char *name = pnb__format("animals/big_birds/bird%d.png", i);
        char *text = pnb__format("A bird number %d.\nde.utf8=Vogel %d.\n%s", i, i,
                                 i == 0 ? "fr.utf8=Un oiseau.\n" : "");
        put_stamp_png(root, name, i);
        memcpy(name + strlen(name) - 3, "txt", 3);
        put_file(root, name, text, strlen(text));
        pnb__free(name);
        pnb__free(text);
    }
    put_file(root, "town/cartoon/house.svg", svg, strlen(svg));
    put_file(root, "town/cartoon/house.txt", "A house.\n", 9);
    put_file(root, "town/sign.svg", SIGN, sizeof SIGN - 1);
    put_file(root, "town/sign.txt", "A sign.\n", 8);
    put_file(root, "town/alone.txt", "Nothing.\n", 9);
    pnb__free(svg);
    pnb__free(shapes);
    return root;
}

#endif
