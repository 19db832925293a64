#pragma once

#include <string>
#include <vector>

// Each function is a subcommand of `tutti`. It takes the words that follow the subcommand's name on the
// command line, and returns the exit status.
namespace tutti::tools {

using Arguments = std::vector<std::string>;

int run_command(const Arguments& arguments);
int store_command(const Arguments& arguments);
int bench_command(const Arguments& arguments);
int info_command(const Arguments& arguments);
int explain_command(const Arguments& arguments);
int debug_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);
int agent_command(const Arguments& arguments);

}  // namespace tutti::tools
