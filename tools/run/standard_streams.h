#pragma once

namespace tutti::tools {

// Opens all standard streams that are closed. Otherwise a file that is opened later would get the
// descriptor number of a closed stream.
void open_standard_streams();

// Replaces a standard stream with /dev/null.
void discard_stream(int stream);

}  // namespace tutti::tools
