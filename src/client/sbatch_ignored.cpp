#include "client/sbatch_ignored.h"

#include <array>

namespace berth::client {

namespace {

using enum Takes;
constexpr std::string_view kMail = "no mail is sent; `berth wait N && mail …` does";
constexpr std::string_view kBinding = "the scheduler binds cores and devices itself";
constexpr std::string_view kOneCluster = "there is one cluster";
constexpr std::string_view kSite = "this scheduler has nothing of the kind";
constexpr std::string_view kNodes = "devices are chosen by the placement, not by node shape";

constexpr std::array kIgnored{
    IgnoredOption{"acctg-freq", 0, Value, kSite},
    IgnoredOption{"batch", 0, Value, kNodes},
    IgnoredOption{"bb", 0, Value, kSite},
    IgnoredOption{"bbf", 0, Value, kSite},
    IgnoredOption{"cluster-constraint", 0, Value, kOneCluster},
    IgnoredOption{"container-id", 0, Value, "name the image with --container"},
    IgnoredOption{"constraint", 'C', Value,
                  "nodes have no features; ask for a type with --gres=gpu:TYPE:N"},
    IgnoredOption{"contiguous", 0, Nothing, kNodes},
    IgnoredOption{"core-spec", 'S', Value, kBinding},
    IgnoredOption{"cores-per-socket", 0, Value, kNodes},
    IgnoredOption{"cpu-freq", 0, Value, kSite},
    IgnoredOption{"delay-boot", 0, Value, kSite},
    IgnoredOption{"distribution", 'm', Value, kBinding},
    IgnoredOption{"extra", 0, Value, kSite},
    IgnoredOption{"extra-node-info", 'B', Value, kNodes},
    IgnoredOption{"get-user-env", 0, Maybe, "the environment is the submitter's; use --export"},
    IgnoredOption{"gid", 0, Value, "the job runs as who submits it"},
    IgnoredOption{"gpu-bind", 0, Value, kBinding},
    IgnoredOption{"gpu-freq", 0, Value, kSite},
    IgnoredOption{"gpus-per-socket", 0, Value, "use --gpus or --gpus-per-node"},
    IgnoredOption{"gres-flags", 0, Value, kBinding},
    IgnoredOption{"hint", 0, Value, kBinding},
    IgnoredOption{"ignore-pbs", 0, Nothing, "#PBS lines are never read"},
    IgnoredOption{"jobid", 0, Value, "numbers are given by the scheduler"},
    IgnoredOption{"licenses", 'L', Value, kSite},
    IgnoredOption{"mail-type", 0, Value, kMail},
    IgnoredOption{"mail-user", 0, Value, kMail},
    IgnoredOption{"mcs-label", 0, Value, kSite},
    IgnoredOption{"mem-bind", 0, Value, kBinding},
    IgnoredOption{"mincpus", 0, Value, kNodes},
    IgnoredOption{"network", 0, Value, kSite},
    IgnoredOption{"no-kill", 'k', Maybe, "a job that loses a node runs again if it may"},
    IgnoredOption{"ntasks-per-core", 0, Value, kNodes},
    IgnoredOption{"ntasks-per-socket", 0, Value, kNodes},
    IgnoredOption{"oom-kill-step", 0, Maybe, "a job that is out of memory ends as OUT_OF_MEMORY"},
    IgnoredOption{"oversubscribe", 's', Nothing, "ask for a share of a device with #BERTH --share"},
    IgnoredOption{"power", 0, Value, kSite},
    IgnoredOption{"prefer", 0, Value, kNodes},
    IgnoredOption{"profile", 0, Value, kSite},
    IgnoredOption{"propagate", 0, Maybe, "limits are those of the scheduler"},
    IgnoredOption{"reboot", 0, Nothing, kSite},
    IgnoredOption{"reservation", 0, Value, kSite},
    IgnoredOption{"resv-ports", 0, Maybe, "a job with tasks gets MASTER_PORT"},
    IgnoredOption{"segment", 0, Value, kNodes},
    IgnoredOption{"share", 0, Nothing, "ask for a share of a device with #BERTH --share"},
    IgnoredOption{"sockets-per-node", 0, Value, kNodes},
    IgnoredOption{"spread-job", 0, Nothing, kNodes},
    IgnoredOption{"stepmgr", 0, Nothing, "steps are always managed in the job"},
    IgnoredOption{"switches", 0, Value, kNodes},
    IgnoredOption{"thread-spec", 0, Value, kBinding},
    IgnoredOption{"threads-per-core", 0, Value, kBinding},
    IgnoredOption{"tmp", 0, Value, kSite},
    IgnoredOption{"tres-bind", 0, Value, kBinding},
    IgnoredOption{"uid", 0, Value, "the job runs as who submits it"},
    IgnoredOption{"use-min-nodes", 0, Nothing, kNodes},
    IgnoredOption{"verbose", 'v', Nothing, "use --test-only to see what would be asked for"},
    IgnoredOption{"wait-all-nodes", 0, Value, "a job starts when all of it can"},
    IgnoredOption{"wckey", 0, Value, "use --comment"},
};

}  // namespace

std::span<const IgnoredOption> ignored_sbatch_options() { return kIgnored; }

}  // namespace berth::client
