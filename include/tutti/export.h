#pragma once

// Marks what the shared library exports; everything else is hidden, so that tutti and what it links
// never collide with the symbols of a host program.
#define TUTTI_API [[gnu::visibility("default")]]
