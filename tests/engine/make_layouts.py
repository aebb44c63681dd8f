#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/layouts.inc, what the layout tests compare with, from facts that were computed elsewhere.

    make_layouts.py OFFSETS.json [OFFSETS.json...] > data/layouts.inc

OFFSETS.json holds, for each build of CPython, offsetof() and sizeof over that build's own headers (`layouts`: label ->
{"structure.member": value}), and for each minor where each word of `_Py_DebugOffsets` stands (`debug_offsets_table`).
Later files
only need `layouts`. Kept are the 64-bit builds (of the later files those whose C long has 4 bytes); builds that agree in every kept value are one column.
"""
import json
import sys

# What the reader needs and no table tells, or only some do.
EXTRA = '''runtime_state.main_thread runtime_state.gilstate_tstate_current runtime_state.gil_last_holder gil.last_holder gil.switch_number thread_state.state thread_state.datastack_top
thread_state.frame thread_state.cframe cframe.current_frame frame_object.f_code frame_object.f_back frame_object.f_lasti
frame_object.f_state interpreter_frame.prev_instr interpreter_frame.stacktop interpreter_frame.is_entry code_object.firsttraceable code_object.co_code unicode_object.data_any
unicode_object.wstr unicode_object.state_kind.bit unicode_object.state_compact.bit unicode_object.state_ascii.bit
unicode_object.state_ready.bit dict_keys.dk_size dict_keys.dk_log2_size dict_keys.dk_log2_index_bytes dict_keys.dk_kind
dict_keys.dk_nentries dict_keys.dk_indices dict_values.values dict_values.valid managed_dict_offset module_object.md_dict
long_object.ob_size type_object.tp_basicsize type_object.tp_dictoffset heap_type_object.ht_cached_keys
unicode_object.compactunicodeobject_size thread_state.status.active.bit frame_owner.interpreter frame_owner.cstack
thread_state_impl.base_frame'''.split()
ABSENT = -2147483648


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        facts = json.load(file)
    tables = {int(v.split('.')[1]): t for v, t in facts['debug_offsets_table'].items()}
    fields = []
    for table in tables.values():
        fields += [f for f in table if f not in fields and f != '_size']
    fields += [f for f in EXTRA if f not in fields]
    for name in sys.argv[2:]:
        with open(name, encoding='utf-8') as file:
            more = json.load(file)['layouts']
        facts['layouts'].update({label: layout for label, layout in more.items() if layout['sizeof_long'] == 4})
    columns = {}
    for label, layout in facts['layouts'].items():
        if layout['sizeof_pointer'] != 8:
            continue
        values = [layout['version_hex'], layout['free_threaded'], layout['sizeof_long']]
        for field in fields:
            if field in ('cookie', 'version', 'free_threaded'):
                values.append(ABSENT)
            else:
                values.append(layout.get(field, ABSENT))
        columns.setdefault(tuple(values), []).append(label)
    print('/* SPDX-License-Identifier: Apache-2.0 */')
    print('/* Written by make_layouts.py. A row: name, place in the tables of 3.13, 3.14, 3.15, values of the builds. */')
    print('#define NONE LAYOUT_NONE')
    print('#define LAYOUT_BUILDS', len(columns))
    print(f'static const char *const layout_builds[{len(columns)}] = {{')
    for labels in columns.values():
        print(f'    "{" ".join(labels)}",')
    print('};')
    for i, name in enumerate(('layout_versions', 'layout_free_threadeds', 'layout_longs')):
        print(f'static const uint32_t {name}[{len(columns)}] = {{' + ', '.join(
            hex(c[i]) if i == 0 else str(c[i]) for c in columns) + '};')
    print('static const layout_row layout_rows[] = {')
    for i, field in enumerate(fields):
        places = ', '.join(str(tables[minor].get(field, -1)) for minor in (13, 14, 15))
        values = ', '.join('NONE' if c[3 + i] == ABSENT else str(c[3 + i]) for c in columns)
        print(f'    {{"{field}", {{{places}}}, {{{values}}}}},')
    print('};')
    print('#undef NONE')


if __name__ == '__main__':
    main()
