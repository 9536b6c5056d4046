// A scheduler of which only the host is left, to be killed: launches one order and waits until it
// is killed itself. Prints a line per event.
//   host_driver RUNDIR ORDERFILE
#include <cstdio>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "exec/local_host.h"
#include "exec/order_file.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream in(argv[2]);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  const auto order = berth::decode_order(bytes.str());
  if (!order) return 2;
  auto host = berth::LocalHost::open(
      {.run_dir = argv[1], .shim = BERTH_SHIM, .cgroup_roots = {}, .log = nullptr},
      [](const berth::HostEvent& event) {
        std::printf("%d\n", static_cast<int>(event.kind));
        std::fflush(stdout);
      });
  if (!host || !(*host)->launch(order->order)) return 1;
  for (;;) ::pause();
}
