#pragma once

#include <string>
#include <vector>

#include <tutti/credentials.h>

namespace tutti {

// Logs that any process may connect, and how to close the ports, if there are no credentials and other hosts
// can reach one of the addresses. Every listener calls this; the log says it once per process.
void warn_of_open_ports(const security::SharedCredentials& credentials,
                        const std::vector<std::string>& addresses);

}  // namespace tutti
