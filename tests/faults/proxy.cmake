# Somebody between the ranks.
tutti_test(faults_proxy SOURCES job.cc proxy_test.cc ../support/sockets_of.cc ../support/tcp_proxy.cc
  LIBS tutti_test_process LABELS sanitize TIMEOUT 900)
add_dependencies(faults_proxy busy_rank)
