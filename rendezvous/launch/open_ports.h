#pragma once

#include <string>
#include <vector>

#include <tutti/credentials.h>

namespace tutti {

// If there are no credentials and one of the addresses can be reached from other hosts, the log says once
// in the life of a process that any process may connect, and what closes the ports. Every listener calls
// this.
void warn_of_open_ports(const security::SharedCredentials& credentials,
                        const std::vector<std::string>& addresses);

}  // namespace tutti
