// In the environment of a job: the path of the script that sbatch was given, for those who look for
// what lies beside it. It is also scontrol's Command.
#pragma once

namespace berth::client {

inline constexpr const char* kScriptVariable = "BERTH_SCRIPT";

}  // namespace berth::client
