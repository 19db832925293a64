#pragma once

#include <string>
#include <vector>

#include <tutti/credentials.h>

namespace tutti {

// Warns if there are no credentials and other hosts can reach one of the addresses, since any process may
// then connect. The warning also says how to close the ports. Every listener calls this function, but the
// warning is logged only once per process.
void warn_of_open_ports(const security::SharedCredentials& credentials,
                        const std::vector<std::string>& addresses);

}  // namespace tutti
