#include <span>

#include <tutti/config.h>
#include <tutti/types.h>

namespace tutti {
namespace {

constexpr std::uint64_t most_ranks = max_ranks;

// clang-format off
constexpr Config::Variable table[] = {
    {.name = "TUTTI_RANK", .member = &Config::rank, .default_value = "",
     .meaning = "This process's rank, from 0. Needs TUTTI_WORLD_SIZE.",
     .most = most_ranks - 1},
    {.name = "TUTTI_WORLD_SIZE", .member = &Config::world_size, .default_value = "",
     .meaning = "The number of processes.",
     .least = 1, .most = most_ranks},
    {.name = "TUTTI_LOCAL_RANK", .member = &Config::local_rank, .default_value = "",
     .meaning = "This process's rank among the processes of its host, from 0.",
     .most = most_ranks - 1},
    {.name = "TUTTI_LOCAL_WORLD_SIZE", .member = &Config::local_world_size, .default_value = "",
     .meaning = "The number of processes on this host.",
     .least = 1, .most = most_ranks},
    {.name = "TUTTI_INIT_METHOD", .member = &Config::init_method, .default_value = "",
     .meaning = "Where the processes meet, as a URL: env://, tcp://host:port, file:///path or mpi://."},
    {.name = "TUTTI_STORE", .member = &Config::store, .default_value = "",
     .meaning = "The host:port of an existing store, which the launcher or `tutti store` serves."},
    {.name = "TUTTI_JOB_ID", .member = &Config::job_id, .default_value = "",
     .meaning = "The name of the job. It separates jobs that share a store or a folder."},
    {.name = "TUTTI_TOKEN", .member = &Config::token, .default_value = "",
     .meaning = "The job's secret. On every connection, both processes prove that they have it. It is never sent or "
                "shown. `tutti run` makes one for each job. Not set: every process that reaches a port may connect."},
    {.name = "TUTTI_TOKEN_FILE", .member = &Config::token_file, .default_value = "",
     .meaning = "A file whose first line is the token, in place of TUTTI_TOKEN."},
    {.name = "TUTTI_TLS", .member = &Config::tls, .default_value = "0",
     .meaning = "Whether connections are encrypted by TLS 1.3, with keys derived from the token, or with the "
                "certificates of the next three variables. Memory that the ranks of a host share is not encrypted.",
     .shapes_wire = true},
    {.name = "TUTTI_TLS_CERT", .member = &Config::tls_cert, .default_value = "",
     .meaning = "For TUTTI_TLS: this process's certificate and its chain, a PEM file."},
    {.name = "TUTTI_TLS_KEY", .member = &Config::tls_key, .default_value = "",
     .meaning = "For TUTTI_TLS: the certificate's private key, a PEM file."},
    {.name = "TUTTI_TLS_CA", .member = &Config::tls_ca, .default_value = "",
     .meaning = "For TUTTI_TLS: the authority that must have signed the other processes' certificates, a PEM file."},
    {.name = "TUTTI_TIMEOUT", .member = &Config::timeout, .default_value = "5m",
     .meaning = "The time limit of an operation, unless the call sets another.",
     .least = 1},
    {.name = "TUTTI_INIT_TIMEOUT", .member = &Config::init_timeout, .default_value = "2m",
     .meaning = "The time limit for the processes to meet.",
     .least = 1},
    {.name = "TUTTI_HEARTBEAT", .member = &Config::heartbeat, .default_value = "10s",
     .meaning = "A process from which nothing has arrived for this long counts as lost. The background thread sends "
                "heartbeats even while a process computes, but a process that is stopped or cut off sends none.",
     .least = 1, .shapes_wire = true},
    {.name = "TUTTI_TRANSPORTS", .member = &Config::transports, .default_value = "",
     .meaning = "The transports to use, in order of preference. Not set, or auto: all that can run except mpi, "
                "fastest first. With mpi, messages travel through an MPI. If the list contains nccl, NCCL carries out "
                "collectives on CUDA devices. If the list is set without nccl, such collectives go through the host.",
     .shapes_wire = true},
    {.name = "TUTTI_CUDA_LIBRARY", .member = &Config::cuda_library, .default_value = "",
     .meaning = "The file of the CUDA driver's library. Not set: libcuda.so.1, if the system has it."},
    {.name = "TUTTI_NCCL_LIBRARY", .member = &Config::nccl_library, .default_value = "",
     .meaning = "The file of NCCL's library. Not set: the one that the process has loaded, or libnccl.so.2 if the "
                "system has it."},
    {.name = "TUTTI_PMIX_LIBRARY", .member = &Config::pmix_library, .default_value = "",
     .meaning = "The file of PMIx's library, through which ranks meet under mpirun on several hosts and under "
                "srun --mpi=pmix. Not set: the one that the process has loaded, or libpmix.so.2 of the launcher or "
                "the system."},
    {.name = "TUTTI_MPI_LIBRARY", .member = &Config::mpi_library, .default_value = "",
     .meaning = "The file of MPI's library, through which ranks meet with mpi://, and through which messages travel with "
                "TUTTI_TRANSPORTS=mpi. Not set: the one that the process has loaded, or else the first that the system "
                "finds, beginning with the launcher's MPI."},
    {.name = "TUTTI_SOCKET_IFNAME", .member = &Config::socket_ifname, .default_value = "",
     .meaning = "Network interfaces: prefixes separated by commas, or a CIDR. A leading ^ excludes, a leading = "
                "matches whole names, and ^= excludes whole names. Not set: the interface that routes to the store."},
    {.name = "TUTTI_BIND_ADDRESS", .member = &Config::bind_address, .default_value = "",
     .meaning = "The address to listen on. Not set: that of the chosen interface."},
    {.name = "TUTTI_ADVERTISE_ADDRESS", .member = &Config::advertise_address, .default_value = "",
     .meaning = "The address to which other processes connect, if it differs from the address that this process "
                "listens on (NAT)."},
    {.name = "TUTTI_PORT_RANGE", .member = &Config::port_range, .default_value = "",
     .meaning = "The ports to listen on, for example 20000-21000. Each process of a host needs two ports, and a third one "
                "if it has an InfiniBand or RoCE device. With file:// or mpi://, and under PMI or PMIx, rank 0 needs one more "
                "for its store. Not set: any free ports."},
    {.name = "TUTTI_LOG_LEVEL", .member = &Config::log_level, .default_value = "warn",
     .meaning = "The least severe level that is logged: off, error, warn, info, debug or trace."},
    {.name = "TUTTI_LOG_FILE", .member = &Config::log_file, .default_value = "",
     .meaning = "The file to which the log is appended. Not set: stderr."},
    {.name = "TUTTI_ALGORITHM", .member = &Config::algorithm, .default_value = "",
     .meaning = "Algorithms to use in place of the selector's choice: all_reduce:ring,broadcast:binomial.",
     .shapes_wire = true},
    {.name = "TUTTI_DETERMINISTIC", .member = &Config::deterministic, .default_value = "0",
     .meaning = "Whether algorithms are chosen by shipped costs instead of measured ones, so that every run makes the "
                "same choice.",
     .shapes_wire = true},
    {.name = "TUTTI_EAGER_LIMIT", .member = &Config::eager_limit, .default_value = "128K",
     .meaning = "Messages up to this size are sent eagerly. Larger messages use a rendezvous: they wait for the "
                "receive. Of two processes, the smaller value counts.",
     .most = 1 << 30},
    {.name = "TUTTI_EAGER_CREDIT", .member = &Config::eager_credit, .default_value = "1M",
     .meaning = "The largest number of eager bytes from one peer that no receive has claimed. It bounds the memory "
                "for each peer. Of two processes, the smaller value counts.",
     .least = 1024, .most = 1 << 30},
    {.name = "TUTTI_TCP_SOCKET_BUFFER", .member = &Config::tcp_socket_buffer, .default_value = "0",
     .meaning = "The send and receive buffer of each TCP socket. 0: the kernel's choice.",
     .most = 1 << 30},
    {.name = "TUTTI_TCP_CONGESTION", .member = &Config::tcp_congestion, .default_value = "",
     .meaning = "The congestion control of TCP connections; \"system\" keeps the kernel's choice. A name that the "
                "kernel refuses is ignored, with a warning. Not set: reno within a host and on private networks, else "
                "the kernel's choice."},
    {.name = "TUTTI_TCP_SOCKETS", .member = &Config::tcp_sockets, .default_value = "0",
     .meaning = "The number of connections between two processes that share the payloads of large messages. 0: one for "
                "each network interface in use.",
     .most = 16},
    {.name = "TUTTI_IB_HCA", .member = &Config::ib_hca, .default_value = "",
     .meaning = "InfiniBand and RoCE devices: prefixes of names separated by commas, each with a port if need be "
                "(mlx5_0:1); a leading ^ excludes, a leading = matches exactly, and ^= excludes exactly. Not set: "
                "NCCL_IB_HCA, or else every device."},
    {.name = "TUTTI_IB_GID_INDEX", .member = &Config::ib_gid_index, .default_value = "",
     .meaning = "The index of the address (GID) to use on each device. Not set: NCCL_IB_GID_INDEX, or else the best "
                "address over which the two processes reach each other.",
     .most = 255},
    {.name = "TUTTI_IB_TC", .member = &Config::ib_tc, .default_value = "",
     .meaning = "The traffic class of RoCE packets. Not set: NCCL_IB_TC, or else 0.",
     .most = 255},
    {.name = "TUTTI_IB_SL", .member = &Config::ib_sl, .default_value = "",
     .meaning = "The service level of InfiniBand packets. Not set: NCCL_IB_SL, or else 0.",
     .most = 15},
    {.name = "TUTTI_IB_TIMEOUT", .member = &Config::ib_timeout, .default_value = "",
     .meaning = "A packet that is not acknowledged is sent again after 4.096 us times two to this power. Not set: "
                "NCCL_IB_TIMEOUT, or else 20, which is about 4 s.",
     .least = 1,
     .most = 31},
    {.name = "TUTTI_IB_RETRY_CNT", .member = &Config::ib_retry_cnt, .default_value = "",
     .meaning = "How often a packet is sent again before the connection counts as broken. Not set: NCCL_IB_RETRY_CNT, "
                "or else 7.",
     .most = 7},
    {.name = "TUTTI_SPIN", .member = &Config::spin, .default_value = "50us",
     .meaning = "How long a waiting thread spins before it gives way to others and then sleeps. On hosts with more "
                "ranks than cores, threads do not spin."},
    {.name = "TUTTI_FRAGMENT", .member = &Config::fragment, .default_value = "128K",
     .meaning = "The largest piece in which a message's payload travels. Of two processes, the smaller value counts.",
     .least = 1024, .most = 128 * 1024},
    {.name = "TUTTI_SHM_WINDOW", .member = &Config::shm_window, .default_value = "1M",
     .meaning = "The shared memory of each rank in each communicator. Collectives on one host move their data through "
                "it. 0: collectives on one host use messages.",
     .most = 1 << 30, .shapes_wire = true},
    {.name = "TUTTI_SHM_RING", .member = &Config::shm_ring, .default_value = "128K",
     .meaning = "The shared memory for each direction between two ranks of a host that exchange messages, rounded up "
                "to a power of two.",
     .least = 4096, .most = 1 << 30},
    {.name = "TUTTI_DUMP", .member = &Config::dump, .default_value = "",
     .meaning = "The file or folder to which a rank writes its last operations when a communicator fails. In the name, "
                "%r is the rank, %h the host, %p the process id, %j the job."},
    {.name = "TUTTI_TRACE", .member = &Config::trace, .default_value = "",
     .meaning = "The file or folder to which a rank writes its operations as Chrome trace events, for Perfetto. Its "
                "name has the same placeholders as TUTTI_DUMP."},
    {.name = "TUTTI_DEBUG", .member = &Config::debug, .default_value = "1",
     .meaning = "Whether `tutti debug` of the same user can ask this process for its operations."},
};
// clang-format on

}  // namespace

std::span<const Config::Variable> Config::variables() { return table; }

}  // namespace tutti
