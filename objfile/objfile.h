/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Object-file readers: bytes in, facts out.
 *
 * One interface over ELF, PE and Mach-O (to come: its magics give AU_OBJ_NOT_RECOGNISED until then). The bytes come
 * from a callback, so the same code reads a file, a module in a tracee's memory, or a test's array. Nothing is
 * allocated: a reader looks through two small windows of the source, so a header that lies about sizes costs nothing.
 * Every count and offset that is read is bounded; whatever does not add up is AU_OBJ_MALFORMED or "not found", never a
 * crash.
 *
 * Three kinds of number, all uint64_t here: an offset in the file, an address in the file ("vaddr", what the linker
 * wrote; in PE one that counts from the image's base), and a run-time address (vaddr + load bias). Names say which.
 *
 * An au_obj is used by one thread at a time. ELF facts: System V ABI (gABI) chapters 4 and 5, and glibc's elf.h. PE
 * facts: Microsoft, "PE Format".
 */
#ifndef AU_OBJFILE_OBJFILE_H
#define AU_OBJFILE_OBJFILE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Reads up to `len` bytes at `offset`; *got may be less (the end, or the edge of what can be read). Returns 0, or
 * anything else when nothing can be read there.
 */
typedef int (*au_obj_read_fn)(void *baton, uint64_t offset, void *buf, size_t len, size_t *got);

typedef struct au_obj_source {
    au_obj_read_fn read;
    void *baton;
    int in_memory; /**< 0: offsets are file offsets. 1: a loaded image; offset 0 is where its file offset 0 is mapped,
                        and what is not loaded (ELF's section headers, .symtab) is absent */
    uint64_t base; /**< in_memory: run-time address of offset 0. Needed because a dynamic linker may have added the
                        load bias to the addresses in the dynamic section */
} au_obj_source;

typedef enum au_obj_result {
    AU_OBJ_OK = 0,
    AU_OBJ_NOT_FOUND,      /**< a sound object without that thing */
    AU_OBJ_NOT_RECOGNISED, /**< no format we know */
    AU_OBJ_UNSUPPORTED,    /**< a format we know in a variety we do not read (big-endian ELF, PE for a ROM) */
    AU_OBJ_MALFORMED,      /**< it contradicts itself */
    AU_OBJ_UNREADABLE      /**< the source has no bytes where they are needed */
} au_obj_result;

typedef enum au_obj_format {
    AU_OBJ_FORMAT_NONE = 0,
    AU_OBJ_FORMAT_ELF,
    AU_OBJ_FORMAT_PE,
    AU_OBJ_FORMAT_MACHO
} au_obj_format;

typedef enum au_obj_type {
    AU_OBJ_TYPE_OTHER = 0,
    AU_OBJ_TYPE_EXEC, /**< ELF: loaded where its addresses say, bias 0. PE: a program and no DLL; its bias is its base,
                           as a DLL's, and where that is says nothing */
    AU_OBJ_TYPE_DYNAMIC /**< loaded anywhere: shared library or position-independent executable. PE: a DLL */
} au_obj_type;

typedef enum au_obj_cpu {
    AU_OBJ_CPU_OTHER = 0,
    AU_OBJ_CPU_X86_64,
    AU_OBJ_CPU_AARCH64,
    AU_OBJ_CPU_X86,
    AU_OBJ_CPU_ARM
} au_obj_cpu;

/** A place in the object. */
typedef struct au_obj_range {
    uint64_t vaddr;
    uint64_t size; /**< 0 if the object does not say */
} au_obj_range;

typedef struct au_obj_window {
    uint64_t offset;
    size_t len;
    uint8_t bytes[4096];
} au_obj_window;

/** Private to the readers. */
typedef struct au_obj_elf {
    uint64_t phoff, shoff;
    uint64_t shnum;
    uint32_t phnum, phentsize, shentsize, shstrndx;
    uint64_t dyn_offset, dyn_size;
    int has_interp;
    int dynamic_read;
    uint64_t symtab, strtab, strsz, hash, gnu_hash, syment, soname, debug;
    unsigned dynamic_has;
} au_obj_elf;

/** Likewise. */
typedef struct au_obj_pe {
    uint64_t sections, strings; /**< file offsets; 0: no string table */
    uint32_t section_count, headers_size, exports, exports_size, debug, debug_size;
    uint32_t last_rva, last_size, last_offset; /**< the section that was looked into last */
} au_obj_pe;

struct au_obj_reader;

typedef struct au_obj {
    /* Facts, valid after au_obj_init gave AU_OBJ_OK. */
    au_obj_format format;
    au_obj_type type;
    au_obj_cpu cpu;
    int bits;             /**< 32 or 64 */
    int long_bytes;       /**< of C's `long` in programs of this format: 4; 8 in 64-bit ELF (LP64), not in PE (LLP64) */
    uint32_t machine;     /**< the format's own number of the CPU (ELF e_machine) */
    uint64_t low_vaddr;   /**< of the lowest loadable segment; PE 0 */
    uint64_t high_vaddr;  /**< past the highest one, by its size in memory; PE SizeOfImage */
    uint64_t image_vaddr; /**< the vaddr that file offset 0 is loaded at; PE 0. Load bias = run-time address of that
                               mapping minus this */
    /* Private. */
    au_obj_source source;
    const struct au_obj_reader *reader;
    au_obj_window table, strings;
    au_obj_elf elf;
    au_obj_pe pe;
} au_obj;

/** Looks at the first bytes and readies `obj` (the caller's storage; about 9 KiB; nothing to free). The source is
 *  copied; its baton must live as long as `obj` is used. */
au_obj_result au_obj_init(au_obj *obj, const au_obj_source *source);

/**
 * A section by its logical name: "PyRuntime" is ELF ".PyRuntime", Mach-O "__DATA,PyRuntime", PE "PyRuntim"; likewise
 * "AsyncioDebug". AU_OBJ_NOT_FOUND also when there are no section headers (an ELF file stripped of them, or in memory).
 * PE: the first eight characters are compared, or all of a name in the string table of a file; the size is the one in
 * memory, without padding.
 */
au_obj_result au_obj_find_section(au_obj *obj, const char *logical_name, au_obj_range *out);

/** A defined symbol by its C name. ELF: exported ones first (hash tables, then a scan), then the full symbol table. PE:
 *  exported ones, whose size is not known; what only passes on another library's symbol is none. */
au_obj_result au_obj_find_symbol(au_obj *obj, const char *name, au_obj_range *out);

/** GNU build id (Mach-O UUID; PE: GUID and age of its PDB, 20 bytes as they are in the file), cut at `cap` bytes. */
au_obj_result au_obj_build_id(au_obj *obj, uint8_t *buf, size_t cap, size_t *len);

/** The name a library gives itself (DT_SONAME; PE: in the export directory), NUL-terminated; AU_OBJ_MALFORMED if it
 * does not fit. */
au_obj_result au_obj_soname(au_obj *obj, char *buf, size_t cap);

/** Reads exactly `len` bytes of the content at a vaddr. AU_OBJ_NOT_FOUND where the file holds none (bss, gaps;
 *  in memory, where nothing of the image is). */
au_obj_result au_obj_read_vaddr(au_obj *obj, uint64_t vaddr, void *buf, size_t len);

/** Does it name a program interpreter (PT_INTERP)? A loader and a static program do not. */
int au_obj_has_interpreter(const au_obj *obj);

/** The content of DT_DEBUG: present in executables only; in memory, set by the loader in the program it started.
 *  AU_OBJ_NOT_FOUND when there is no such entry. */
au_obj_result au_obj_debug_entry(au_obj *obj, uint64_t *out);

/** Stock text of a result. */
const char *au_obj_result_text(au_obj_result result);

#endif
