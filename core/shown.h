#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// How texts that others have written are shown: in messages, logs, reports and dumps.
namespace tutti {

// The length of the UTF-8 sequence that `text` begins with; 0 if it is none. `text` is not empty.
std::size_t utf8_length(std::string_view text);
// Whether the UTF-8 sequence controls a terminal: C0, DEL or C1.
bool is_control(std::string_view sequence);

// The text without anything that controls a terminal or begins a new line: such bytes, and those that are no
// UTF-8, become \n, \r, \t or \x1b.
std::string printable(std::string text);

// A variable's value as people may see it: "(set)" for a secret and for an unknown TUTTI_* variable, and in a
// URL for the user and password and for a parameter whose name says that it is a secret; the rest is
// printable. Every value that is shown goes through here.
std::string shown(std::string_view name, std::string_view value);

// Says that a value has something at its ends that files of variables add by mistake (a carriage return
// behind it, or quotes around it), and what would help. Empty if there is nothing of the kind.
std::string_view unmeant_ends(std::string_view value);

}  // namespace tutti
