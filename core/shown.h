#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// These functions make texts from outside safe to show in messages, logs, reports and dumps.
namespace tutti {

// Returns the length of the UTF-8 sequence that `text` begins with, or 0 if it is not valid. `text` must not
// be empty.
std::size_t utf8_length(std::string_view text);
// Returns whether the UTF-8 sequence controls a terminal (C0, DEL or C1).
bool is_control(std::string_view sequence);

// Returns the text without anything that controls a terminal or begins a new line. Such bytes, and those that
// are not UTF-8, become escapes such as \n, \r, \t or \x1b.
std::string printable(std::string text);

// Returns a variable's value in a form that may be shown, with "(set)" in place of secrets. The
// value of a TUTTI_* variable is a secret if the variable is secret or unknown. The value of any
// other variable is a secret if the name suggests it. In a URL, the user, the password, and each
// parameter whose name suggests a secret are secrets. The rest is made printable. Every value that
// is shown passes through this function.
std::string shown(std::string_view name, std::string_view value);

// Returns a hint if `value` ends with a carriage return or has quotes around it, or else an empty text. Such
// characters usually come by mistake from a file of environment variables.
std::string_view unmeant_ends(std::string_view value);

}  // namespace tutti
