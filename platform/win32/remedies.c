/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/platform.h"

const au_remedies *au_platform_remedies(void)
{
    static const au_remedies remedies = {
        .look_up_pids = "tasklist /fi \"imagename eq python*\"",
        .end_process = "taskkill /f /pid",
        .any_right = "run austin from a console that was opened with 'Run as administrator'",
        .no_right = "something protects it, such as security software or the system itself: look there, or profile "
                    "another process",
        .open_files = "end other programs: this one may not open more files",
        .all_files = "end other programs: the whole system has too many files open",
        .memory = "end other programs, or enlarge the paging file",
        .tasks = "end other programs: no more threads can be started",
        .file_size = "choose a file on another volume: this one takes no larger files",
        .a_command = "check the name of the program, PATH and PATHEXT",
    };
    return &remedies;
}
