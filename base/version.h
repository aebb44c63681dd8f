/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The version of this release: the one place that holds it. `austin -V`, the metadata `austin` of a stream and the
 * manual page all say the same.
 */
#ifndef AU_BASE_VERSION_H
#define AU_BASE_VERSION_H

#define AU_VERSION "5.0.0"

#endif
