/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Where things lie inside CPython's structures, as data: one `au_layout` describes one build.
 *
 * 3.13 and later publish most of it in memory (`_Py_DebugOffsets`, Include/internal/pycore_debug_offsets.h; in 3.13
 * pycore_runtime.h); `au_layout_from_debug_offsets` reads that table and adds the few constants that are in none.
 * 3.10 to 3.12 publish nothing: their tables were computed with offsetof() against the headers of 3.10.13, 3.11.7 and
 * 3.12.1 (LP64), 3.10.8, 3.11.3 and 3.12.1 (LLP64) and are admitted by live checks only (engine/find.c).
 *
 * All offsets are in bytes from the start of the structure that the name's first part says. AU_ABSENT: this build has
 * no such field.
 */
#ifndef AU_ENGINE_LAYOUT_H
#define AU_ENGINE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define AU_ABSENT UINT32_MAX

/* X(name): every offset of an au_layout */
#define AU_LAYOUT_FIELDS(X)                                                                                            \
    X(runtime_finalizing) /* thread state that ends the runtime, behind the int `initialized` */                       \
    X(runtime_interpreters_head)                                                                                       \
    X(runtime_main_thread)    /* pthread id of the main thread */                                                      \
    X(runtime_tstate_current) /* 3.10, 3.11: thread state that holds the GIL, or 0 */                                  \
    X(runtime_gil)            /* 3.10, 3.11: struct _gil_runtime_state; later each interpreter points to its own */    \
    X(interp_gil)                                                                                                      \
    X(interp_next)                                                                                                     \
    X(interp_id) /* int64 */                                                                                           \
    X(interp_threads_head)                                                                                             \
    X(interp_modules) /* sys.modules, a dict; 3.12: AU_ABSENT is never the case */                                     \
    X(interp_sysdict)                                                                                                  \
    X(interp_code_generation) /* 3.14+: goes up when any code object is freed */                                       \
    X(interp_code_counter)    /* 3.13: uint32 version of the code object to be made next; in no table (counter.c) */   \
    X(tstate_next)                                                                                                     \
    X(tstate_interp)                                                                                                   \
    X(tstate_frame)            /* 3.10: PyFrameObject; 3.13+: _PyInterpreterFrame */                                   \
    X(tstate_cframe)           /* 3.11, 3.12: the frame is one hop further */                                          \
    X(tstate_base_frame)       /* 3.15: a pointer to the root of every chain, a frame in _PyThreadStateImpl */         \
    X(tstate_thread_id)        /* pthread_t, the key of threading._active */                                           \
    X(tstate_native_thread_id) /* as the tracee's PID namespace numbers it; 3.10: absent */                            \
    X(tstate_id)               /* 3.10, where no thread id is told: unique in its interpreter; else absent */          \
    X(tstate_datastack_chunk)                                                                                          \
    X(tstate_datastack_top)                                                                                            \
    X(tstate_status) /* 3.12: bit field with `active` */                                                               \
    X(tstate_state)  /* 3.13+: int, 1 = attached */                                                                    \
    X(cframe_current_frame)                                                                                            \
    X(frame_executable)                                                                                                \
    X(frame_previous)                                                                                                  \
    X(frame_ip)         /* prev_instr up to 3.12, instr_ptr from 3.13; 3.10: f_lasti, an int */                        \
    X(frame_owner)      /* one byte; 3.10: absent */                                                                   \
    X(frame_stacktop)   /* 3.11 to 3.13: int32, -1 while the frame itself executes */                                  \
    X(frame_is_entry)   /* 3.11: one byte, called from C (Include/internal/pycore_frame.h) */                          \
    X(frame_tlbc_index) /* free-threaded 3.14+: int32 */                                                               \
    X(frame_localsplus) /* also the least size of a frame */                                                           \
    X(frame_state)      /* 3.10: int8 f_state */                                                                       \
    X(frame_function)   /* 3.11+: the function object that was called */                                               \
    X(gen_frame)        /* 3.11+: the frame inside a generator object */                                               \
    X(code_filename)                                                                                                   \
    X(code_name)                                                                                                       \
    X(code_qualname) /* 3.11+ */                                                                                       \
    X(code_linetable)                                                                                                  \
    X(code_firstlineno)    /* int32 */                                                                                 \
    X(code_framesize)      /* 3.12+: int32, words of a frame of this code */                                           \
    X(code_version)        /* 3.12+: uint32, another one for every code object */                                      \
    X(code_firsttraceable) /* 3.11+: int32, in code units */                                                           \
    X(code_bytecode)       /* co_code_adaptive; 3.10: pointer to a bytes object */                                     \
    X(code_tlbc)           /* free-threaded 3.14+ */                                                                   \
    X(object_type)                                                                                                     \
    X(object_size) /* ob_size of variable-size objects */                                                              \
    X(type_name)                                                                                                       \
    X(type_flags)                                                                                                      \
    X(type_basicsize)                                                                                                  \
    X(type_dictoffset)                                                                                                 \
    X(type_cached_keys) /* of heap types */                                                                            \
    X(bytes_data)                                                                                                      \
    X(str_length)                                                                                                      \
    X(str_state)                                                                                                       \
    X(str_ascii_data)                                                                                                  \
    X(str_compact_data)                                                                                                \
    X(str_any)  /* pointer to the data of a string that is not compact */                                              \
    X(str_wstr) /* 3.10, 3.11: wchar_t text of a string that is not "ready" */                                         \
    X(dict_keys)                                                                                                       \
    X(dict_values)                                                                                                     \
    X(keys_size)             /* 3.10: dk_size; later dk_log2_size, one byte */                                         \
    X(keys_log2_index_bytes) /* 3.11+ */                                                                               \
    X(keys_kind)             /* 3.11+: 0 general, 1 unicode, 2 split */                                                \
    X(keys_nentries)                                                                                                   \
    X(keys_indices)                                                                                                    \
    X(values_data)  /* first value in a split dict's values */                                                         \
    X(values_valid) /* 3.13+: one byte */                                                                              \
    X(int_size)     /* up to 3.11: ob_size with the sign; 3.12+: lv_tag */                                             \
    X(int_digits)                                                                                                      \
    X(module_dict)

/** How an instance finds its attributes (internals differ by version). */
typedef enum au_attr_style {
    AU_ATTRS_DICTOFFSET, /**< 3.10: dict pointer at object + tp_dictoffset */
    AU_ATTRS_311,        /**< managed: values pointer 4 words, dict pointer 3 words before the object */
    AU_ATTRS_312,        /**< managed: one tagged word, 3 words before the object */
    AU_ATTRS_INLINE      /**< 3.13+: dict pointer before the object; if NULL, inline values behind it */
} au_attr_style;

/** How the position of an instruction is written down. */
typedef enum au_table_style { AU_TABLE_310, AU_TABLE_311 } au_table_style;

typedef struct au_layout {
#define AU_X(name) uint32_t name;
    AU_LAYOUT_FIELDS(AU_X)
#undef AU_X
    unsigned minor;
    int long_bytes; /**< of C's long: 8 (LP64) or 4 (LLP64). Thread ids are unsigned longs, and wchar_t has 2 bytes with
                         the latter */
    int free_threaded;
    int gil_tells;       /**< last_holder and switch_number of the GIL are where au_engine looks: not free-threaded */
    int tagged;          /**< 3.14+: `executable` is a _PyStackRef */
    unsigned shim_owner; /**< frames of this owner or above are no Python frames; 255: there are none */
    au_attr_style attrs;
    au_table_style table;
    int32_t managed_dict;                      /**< offset before the object of the dict pointer */
    unsigned kind_bit, compact_bit, ascii_bit; /**< in the string's state word */
    int ready_bit;                             /**< 3.10, 3.11; -1 later */
    uint32_t active_mask;                      /**< 3.12: bit of tstate_status; 0 otherwise */
} au_layout;

/** The static table of 3.10, 3.11 or 3.12 for a 64-bit target whose C long is that long; NULL for any other minor. */
const au_layout *au_layout_static(unsigned minor, int long_bytes);

enum { AU_DEBUG_OFFSETS_MAX = 888, AU_DEBUG_OFFSETS_313 = 584, AU_DEBUG_OFFSETS_314 = 760, AU_DEBUG_OFFSETS_315 = 888 };

typedef enum au_offsets_verdict {
    AU_OFFSETS_OK = 0,
    AU_OFFSETS_NO_COOKIE,       /**< this is no debug-offsets table at all */
    AU_OFFSETS_UNKNOWN_VERSION, /**< a minor that we do not know; *hexversion is set */
    AU_OFFSETS_IMPLAUSIBLE      /**< an offset outside its structure, a bad flag: not to be trusted */
} au_offsets_verdict;

/**
 * Judges and reads a `_Py_DebugOffsets` table from the first `len` bytes of `_PyRuntime`. `runtime_size` is the size
 * of the section it was found in, 0 if not known; `long_bytes` is a fact of the object file that the runtime is in.
 * *hexversion is PY_VERSION_HEX once the cookie was seen.
 */
au_offsets_verdict au_layout_from_debug_offsets(const uint8_t *bytes, size_t len, uint64_t runtime_size, int long_bytes,
                                                au_layout *layout, uint64_t *hexversion);

#endif
