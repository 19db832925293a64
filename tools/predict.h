#pragma once

#include <iosfwd>
#include <string>

#include "collectives/schedule/selector.h"

namespace tutti::tools {

// Compares the times in a CSV file of `tutti bench` with the simulator's predictions for the
// selector's choices. The ranks are on one host, or on the hosts of `topology` if it is not null.
// Prints one line for each measurement. Then prints the mean and the largest error for each number
// of ranks and class of sizes. Returns an error message, which is empty if the file is valid.
std::string validate(const std::string& file, const Selector& selector, const Topology* topology,
                     std::ostream& out);

// Prints the time of every algorithm on 8 to 100,000 ranks, `ranks_per_host` on each host, as CSV:
// "collective,algorithm,bytes,ranks,seconds,bound,how". `how` is "events" for a simulated time, and
// "closed form" for a time from the algorithm's cost formula.
void print_scaling(const Selector& selector, int ranks_per_host, std::ostream& out);

}  // namespace tutti::tools
