#pragma once

#include <string>
#include <vector>

// These functions name the program that a process runs, by the command that started it.
namespace tutti::rendezvous {

// The words of the command that started this process; empty if they cannot be read.
std::vector<std::string> start_command();

// The name of the program without its folder: "a.out" for `./a.out -v`, "train.py" for `python3 -u train.py`,
// "pkg.train" for `python -m pkg.train`. Empty if the words do not tell, as in `python -c ...`.
std::string program_of(const std::vector<std::string>& words);

}  // namespace tutti::rendezvous
