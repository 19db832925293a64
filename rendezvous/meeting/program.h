#pragma once

#include <string>
#include <vector>

// These functions find the name of the program that a process runs, from the command that started it.
namespace tutti::rendezvous {

// Returns the words of the command that started this process, or nothing if they cannot be read.
std::vector<std::string> start_command();

// Returns the name of the program without its folder: "a.out" for `./a.out -v`, "train.py" for `python3 -u
// train.py`, "pkg.train" for `python -m pkg.train`. Returns an empty text if the words do not contain a name,
// as in `python -c ...`.
std::string program_of(const std::vector<std::string>& words);

}  // namespace tutti::rendezvous
