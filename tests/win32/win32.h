/* SPDX-License-Identifier: Apache-2.0 */
/** @file What the tests of platform/win32 share. */
#ifndef AU_TESTS_WIN32_WIN32_H
#define AU_TESTS_WIN32_WIN32_H

#include <check.h>
#include <wchar.h>

#include "platform/win32/win32.h"

enum { PATH_CAP = 2048 };

/** A folder of this run, with what tests have made in it. */
extern wchar_t test_folder[PATH_CAP];

/** This program, which is also what is launched. */
extern wchar_t test_program[PATH_CAP];
extern char test_program_utf8[PATH_CAP];

/** folder\name in UTF-16 and UTF-8; one of a few buffers. */
wchar_t *test_path(const wchar_t *name);
char *test_utf8(const wchar_t *text);

/** A file with a text in it, in test_folder. */
void test_file(const wchar_t *name, const char *text);

/** What is in a file of test_folder, with a 0 behind it; "" if it is not there. One buffer. */
const char *test_read(const wchar_t *name);

/** The number in a file of test_folder, once it is there; 0: not within seconds. */
DWORD test_number(const wchar_t *name);

/** What this program does when it is launched by a test: argv[1] is --child. */
int test_child(int argc, char **argv);

Suite *suite_command(void);
Suite *suite_launch(void);
Suite *suite_terminal(void);

#endif
