#pragma once

#include <string>
#include <vector>

#include <tutti/credentials.h>

namespace tutti {

// Warns if there are no credentials and other hosts can reach one of the addresses, since any process may
// then connect. The warning also says how the ranks get a token. A process logs the warning only once, no
// matter how often it calls this function.
void warn_of_open_ports(const security::SharedCredentials& credentials,
                        const std::vector<std::string>& addresses);

}  // namespace tutti
