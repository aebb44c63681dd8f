/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/platform.h"

const au_remedies *au_platform_remedies(void)
{
    static const au_remedies remedies = {
        .look_up_pids = "pgrep -af python",
        .end_process = "kill -KILL",
        .any_right = "run austin as root (sudo), or give it the capability CAP_SYS_PTRACE",
        .no_right = "run austin where root has the capability CAP_SYS_PTRACE",
        .open_files = "raise the limit of open files, for example: ulimit -n 1024",
        .all_files = "the whole system has too many files open: end other programs, or raise fs.file-max",
        .memory = "raise the limit of memory (ulimit -v, or memory.max of the control group), or end other programs",
        .tasks = "raise the limit of processes and threads (ulimit -u, or pids.max of the control group) or that of "
                 "memory (ulimit -v)",
        .file_size = "raise the limit of file sizes (ulimit -f) or choose another file system",
        .a_command = "check the name of the program, PATH, and that the file may be executed",
    };
    return &remedies;
}
