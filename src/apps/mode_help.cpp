#include "apps/mode_help.h"

#include <vector>

#include <fmt/format.h>

#include "cpu/cpu_tuner.h"
#include "power/power_managers.h"

namespace berth {

namespace {

std::string with_params(std::string help, const std::vector<ParamSpec>& params) {
  for (const ParamSpec& param : params)
    help += fmt::format(" {} ({}): {};", param.key, param.default_value, param.meaning);
  help.back() = '.';
  return help;
}

}  // namespace

std::string cpu_help() {
  return with_params(
      "who shares out the cores of a server: off, shared, role, bind or aware (default off: a job "
      "has the cores it asked for); aware takes options, as in aware:objective=sum,leftover=deal:",
      aware_params());
}

std::string power_help() {
  return with_params(
      "who switches nodes off and on beside the policy: off, ces, or spare:share=0.02, which keeps "
      "that part of the nodes back for those that fail (default off: nodes stay on); "
      "ces takes options, as in ces:buffer=4,forecast=naive:",
      ces_params());
}

}  // namespace berth
