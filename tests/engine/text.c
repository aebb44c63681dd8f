/* SPDX-License-Identifier: Apache-2.0 */
/* Names: from each width of character to UTF-8 that a stream can carry. */
#include <stdlib.h>
#include <string.h>

#include "engine/text.h"
#include "tests/engine/suites.h"

static au_buf out;

static void setup(void)
{
    memset(&out, 0, sizeof out);
}

static void teardown(void)
{
    au_buf_deinit(&out);
}

/* Feeds characters in the width of the test's turn; -9 when they do not fit it. */
static int feed(const uint32_t *chars, size_t count, unsigned width, int more)
{
    uint8_t *bytes = malloc(count * width + 1);
    int result;
    ck_assert(bytes != NULL);
    for (size_t i = 0; i < count; i++) {
        if (width < 4 && chars[i] >> (8 * width)) {
            free(bytes);
            return -9;
        }
        for (unsigned k = 0; k < width; k++) {
            bytes[i * width + k] = (uint8_t)(chars[i] >> (8 * k));
        }
    }
    result = au_text_append(&out, bytes, count, width, 0, more);
    free(bytes);
    return result;
}

static int is(const char *text)
{
    return out.len == strlen(text) && memcmp(out.data, text, out.len) == 0;
}

static const unsigned widths[] = {1, 2, 4};

static const struct {
    uint32_t chars[4];
    const char *text;
} cases[] = {
    {{'a', 'z', '_', '9'}, "az_9"},
    {{0x7f, 0x80, 0xe9, 0xff}, "\x7f\xc2\x80\xc3\xa9\xc3\xbf"},
    {{0x3b1, 0x7ff, 0x800, 0x4e2d}, "\xce\xb1\xdf\xbf\xe0\xa0\x80\xe4\xb8\xad"},
    {{0xfffc, 0xfffe, 0xffff, 0xe000}, "\xef\xbf\xbc\xef\xbf\xbe\xef\xbf\xbf\xee\x80\x80"},
    {{0x10000, 0x1f40d, 0x10ffff, 'x'}, "\xf0\x90\x80\x80\xf0\x9f\x90\x8d\xf4\x8f\xbf\xbfx"},
    {{0, 'a', 0, 1},
     "\xef\xbf\xbd"
     "0000a"
     "\xef\xbf\xbd"
     "0000\x01"},
    {{0xd800, 0xdbff, 0xdc00, 0xdfff},
     "\xef\xbf\xbd"
     "D800"
     "\xef\xbf\xbd"
     "DBFF"
     "\xef\xbf\xbd"
     "DC00"
     "\xef\xbf\xbd"
     "DFFF"},
    {{0xfffd, 'F', 'F', 'F'},
     "\xef\xbf\xbd"
     "FFFDFFF"},
    {{0xd7ff, 0xdcab, 0xe000, 0xfffd},
     "\xed\x9f\xbf\xef\xbf\xbd"
     "DCAB\xee\x80\x80\xef\xbf\xbd"
     "FFFD"},
};

START_TEST(characters)
{
    int fitted = 0;
    for (size_t w = 0; w < 3; w++) {
        out.len = 0;
        int result = feed(cases[_i].chars, 4, widths[w], 0);
        if (result != -9) {
            ck_assert_int_eq(result, 0);
            ck_assert(is(cases[_i].text));
            fitted++;
        }
    }
    ck_assert_int_ge(fitted, 1);
}
END_TEST

START_TEST(no_characters)
{
    static const uint32_t high[] = {'a', 0x110000};
    static const uint32_t all[] = {UINT32_MAX};
    ck_assert_int_eq(au_buf_append(&out, "kept", 4), 0);
    ck_assert_int_eq(feed(high, 2, 4, 0), -2);
    ck_assert_int_eq(feed(all, 1, 4, 1), -2);
    ck_assert(is("kept"));
    ck_assert_int_eq(feed(high, 0, 4, 0), 0);
    ck_assert(is("kept"));
    ck_assert_int_eq(feed(high, 1, 4, 0), 0);
    ck_assert(is("kepta"));
}
END_TEST

/* UTF-16: two halves in order are one character, any other half is itself. */
START_TEST(surrogate_pairs)
{
    static const struct {
        uint16_t units[4];
        const char *text, *apart;
    } pairs[] = {
        {{0xd83d, 0xdc0d, 'x', 'y'},
         "\xf0\x9f\x90\x8dxy",
         ("\xef\xbf\xbd"
          "D83D\xef\xbf\xbd"
          "DC0Dxy")},
        {{0xd800, 0xdc00, 0xdbff, 0xdfff},
         "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
         ("\xef\xbf\xbd"
          "D800\xef\xbf\xbd"
          "DC00\xef\xbf\xbd"
          "DBFF\xef\xbf\xbd"
          "DFFF")},
        {{0xd83d, 0xd83d, 0xdc0d, 0xdc0d},
         ("\xef\xbf\xbd"
          "D83D\xf0\x9f\x90\x8d\xef\xbf\xbd"
          "DC0D"),
         ("\xef\xbf\xbd"
          "D83D\xef\xbf\xbd"
          "D83D\xef\xbf\xbd"
          "DC0D\xef\xbf\xbd"
          "DC0D")},
        {{'x', 0xe000, 0xdc0d, 0xd83d},
         ("x\xee\x80\x80\xef\xbf\xbd"
          "DC0D\xef\xbf\xbd"
          "D83D"),
         ("x\xee\x80\x80\xef\xbf\xbd"
          "DC0D\xef\xbf\xbd"
          "D83D")},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        uint8_t *bytes = malloc(8); /* a read behind the last half is seen */
        ck_assert(bytes != NULL);
        for (size_t k = 0; k < 4; k++) {
            bytes[2 * k] = (uint8_t)(pairs[i].units[k] & 0xff);
            bytes[2 * k + 1] = (uint8_t)(pairs[i].units[k] >> 8);
        }
        out.len = 0;
        ck_assert_int_eq(au_text_append(&out, bytes, 4, 2, 1, 0), 0);
        ck_assert(is(pairs[i].text));
        out.len = 0;
        ck_assert_int_eq(au_text_append(&out, bytes, 4, 2, 0, 0), 0);
        ck_assert(is(pairs[i].apart));
        free(bytes);
    }
}
END_TEST

/* Every length around the limit, for characters of 1, 2, 3, 4 and 7 bytes. */
START_TEST(limit)
{
    static const struct {
        uint32_t c;
        size_t bytes;
    } kinds[] = {{'a', 1}, {0xe9, 2}, {0x4e2d, 3}, {0x1f40d, 4}, {0xdc80, 7}};
    size_t each = kinds[_i].bytes;
    size_t fit = AU_TEXT_MAX / each;
    static uint32_t chars[AU_TEXT_MAX + 8];
    for (size_t i = 0; i < sizeof chars / sizeof chars[0]; i++) {
        chars[i] = kinds[_i].c;
    }
    for (size_t n = fit - 4; n <= fit + 4; n++) {
        for (int more = 0; more < 2; more++) {
            out.len = 0;
            ck_assert_int_eq(feed(chars, n, 4, more), 0);
            ck_assert_uint_le(out.len, AU_TEXT_MAX);
            int cut = n > fit || more;
            if (!cut) {
                ck_assert_uint_eq(out.len, n * each);
                continue;
            }
            ck_assert_mem_eq(out.data + out.len - 3, "\xe2\x80\xa6", 3);
            ck_assert_uint_eq((out.len - 3) % each, 0); /* at a character */
            size_t whole = n > fit ? (AU_TEXT_MAX - 3) / each : n;
            if (whole * each + 3 > AU_TEXT_MAX) {
                whole = (AU_TEXT_MAX - 3) / each;
            }
            ck_assert_uint_eq(out.len, whole * each + 3);
        }
    }
}
END_TEST

/* No two strings of three characters out of a nasty set become the same text. */
START_TEST(injective)
{
    static const uint32_t set[] = {0, '0', 'F', 'D', 0xfffd, 0xd800, 0xdfff, 'A'};
    enum { SET = 8, WORDS = SET * SET * SET };
    static char texts[WORDS][32];
    for (int i = 0; i < WORDS; i++) {
        uint32_t word[3] = {set[i % SET], set[i / SET % SET], set[i / SET / SET]};
        out.len = 0;
        ck_assert_int_eq(feed(word, 3, 4, 0), 0);
        ck_assert_uint_lt(out.len, sizeof texts[0]);
        memcpy(texts[i], out.data, out.len);
        texts[i][out.len] = '\0';
        ck_assert_uint_eq(strlen(texts[i]), out.len); /* no NUL inside */
        for (int k = 0; k < i; k++) {
            ck_assert_str_ne(texts[i], texts[k]);
        }
    }
}
END_TEST

Suite *au_text_suite(void)
{
    Suite *suite = suite_create("text");
    TCase *tcase = tcase_create("text");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, characters, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tcase, no_characters);
    tcase_add_test(tcase, surrogate_pairs);
    tcase_add_loop_test(tcase, limit, 0, 5);
    tcase_add_test(tcase, injective);
    suite_add_tcase(suite, tcase);
    return suite;
}
