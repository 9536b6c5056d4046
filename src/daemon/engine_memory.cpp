#include "daemon/engine_memory.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/digest.h"

namespace berth {

namespace {

/// A log that another format has written is not read.
constexpr std::uint64_t kFormat = 1;

/// Weeks of a busy machine. A plain policy replays as many in seconds.
constexpr std::size_t kMostPasses = 200'000;
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

}  // namespace

bool EngineMemory::is_too_long() const noexcept {
  return length > kMostPasses || bytes > kMostBytes;
}

std::string to_bytes(const EngineMemory& memory) {
  ByteWriter out;
  out.natural(kFormat);
  out.text(memory.identity);
  out.integer(memory.wall);
  out.natural(memory.slots);
  return out.take();
}

Result<EngineMemory> engine_memory_from(std::vector<std::string> log) {
  if (log.empty()) return fail("an empty log");
  EngineMemory memory;
  try {
    ByteReader in{log.front()};
    if (in.natural() != kFormat) return fail("a log of another format");
    memory.identity = in.text();
    memory.wall = in.integer();
    memory.slots = static_cast<std::size_t>(in.natural());
  } catch (const std::exception& error) {
    return fail(fmt::format("the log of the engine cannot be read: {}", error.what()));
  }
  log.erase(log.begin());
  memory.length = log.size();
  for (const std::string& pass : log) memory.bytes += pass.size();
  memory.passes = std::move(log);
  return memory;
}

std::string fingerprint(const Cluster& cluster) {
  Digest digest;
  const auto add_real = [&](double value) { digest.add(fmt::format("{}", value)); };
  for (const DeviceType& pool : cluster.pools) digest.add(pool.name);
  for (const Node& node : cluster.nodes) {
    digest.add(node.name);
    digest.add(static_cast<std::uint64_t>(node.pool.value));
    digest.add(static_cast<std::uint64_t>(node.rack.value));
    digest.add(std::int64_t{node.gpus});
    digest.add(node.cpus_milli);
    digest.add(node.memory_mib);
    digest.add(std::int64_t{node.shape.sockets});
    digest.add(std::int64_t{node.shape.switches});
    digest.add(std::int64_t{node.shape.nvlink_island});
    digest.add(static_cast<std::uint64_t>(node.nvlink.value_or(0)));
    digest.add(static_cast<std::uint64_t>(node.stays_on));
  }
  for (const NvlinkMatrix& matrix : cluster.nvlinks) {
    for (const double bandwidth : matrix.bandwidth) add_real(bandwidth);
  }
  for (const double link : {cluster.links.nvlink, cluster.links.pcie, cluster.links.socket,
                            cluster.links.rack, cluster.links.cross_rack})
    add_real(link);
  return digest.hex();
}

}  // namespace berth
