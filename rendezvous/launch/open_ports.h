#pragma once

#include <string>
#include <vector>

#include <tutti/credentials.h>

namespace tutti {

// Warns if any process may connect: if there are no credentials, and other hosts can reach one of the
// addresses. The warning also says how to close the ports. Every listener calls this, but it is logged once
// per process.
void warn_of_open_ports(const security::SharedCredentials& credentials,
                        const std::vector<std::string>& addresses);

}  // namespace tutti
