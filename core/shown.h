#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// These functions make text from outside safe to show in messages, logs, reports and dumps.
namespace tutti {

// The length of the UTF-8 sequence that `text` begins with; 0 if it begins with none. `text` is not empty.
std::size_t utf8_length(std::string_view text);
// Returns whether the UTF-8 sequence controls a terminal: C0, DEL or C1.
bool is_control(std::string_view sequence);

// The text without anything that controls a terminal or begins a new line: such bytes, and those that are not
// UTF-8, become escapes like \n, \r, \t or \x1b.
std::string printable(std::string text);

// Returns a variable's value in a form that people may see. "(set)" replaces the value of a secret or of an
// unknown TUTTI_* variable, and in a URL the user and password and each parameter whose name says that it is
// a secret. The rest is printable. Every value that is shown goes through this function.
std::string shown(std::string_view name, std::string_view value);

// Returns advice if a value has a carriage return at its end or quotes around it, which files of variables
// add by mistake. Otherwise it returns an empty text.
std::string_view unmeant_ends(std::string_view value);

}  // namespace tutti
