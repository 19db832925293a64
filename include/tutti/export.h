#pragma once

// TUTTI_API marks the symbols that the shared library exports. All other symbols are hidden, so that tutti
// and the libraries that are linked into it never collide with symbols of the program.
#define TUTTI_API [[gnu::visibility("default")]]
