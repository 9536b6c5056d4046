#include "apps/reproduce.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "apps/commands.h"
#include "base/suggest.h"
#include "base/text_table.h"

namespace berth {

Result<Reproduced> reproduce_sjf_bsbf(const ReproduceOptions& options);
Result<Reproduced> reproduce_gandiva(const ReproduceOptions& options);
Result<Reproduced> reproduce_andreas(const ReproduceOptions& options);
Result<Reproduced> reproduce_antman(const ReproduceOptions& options);
Result<Reproduced> reproduce_muri(const ReproduceOptions& options);
Result<Reproduced> reproduce_optimus(const ReproduceOptions& options);
Result<Reproduced> reproduce_fgd(const ReproduceOptions& options);
Result<Reproduced> reproduce_cpu(const ReproduceOptions& options);
Result<Reproduced> reproduce_locality(const ReproduceOptions& options);
Result<Reproduced> reproduce_oasis(const ReproduceOptions& options);
Result<Reproduced> reproduce_aonline(const ReproduceOptions& options);
Result<Reproduced> reproduce_gavel(const ReproduceOptions& options);
Result<Reproduced> reproduce_gandiva_fair(const ReproduceOptions& options);
Result<Reproduced> reproduce_chronus(const ReproduceOptions& options);
Result<Reproduced> reproduce_elasticflow(const ReproduceOptions& options);
Result<Reproduced> reproduce_pollux(const ReproduceOptions& options);
Result<Reproduced> reproduce_sia(const ReproduceOptions& options);
Result<Reproduced> reproduce_themis(const ReproduceOptions& options);

namespace {

const std::array kReproductions{
    Reproduction{"sjf-bsbf", "wise resource sharing, SJF-BSBF (IWQoS 2024)", false,
                 reproduce_sjf_bsbf},
    Reproduction{"gandiva", "Gandiva, introspective scheduling (OSDI 2018)", false,
                 reproduce_gandiva},
    Reproduction{"antman", "AntMan, dynamic scaling (OSDI 2020)", false, reproduce_antman},
    Reproduction{"andreas", "ANDREAS, energy and tardiness by randomised greedy (FiCloud 2021)",
                 false, reproduce_andreas},
    Reproduction{"muri", "Muri, multi-resource interleaving (SIGCOMM 2022)", true, reproduce_muri},
    Reproduction{"optimus", "Optimus, elastic training jobs (EuroSys 2018)", false,
                 reproduce_optimus},
    Reproduction{"fgd", "FGD, fragmentation gradient descent (ATC 2023)", true, reproduce_fgd},
    Reproduction{"cpu", "performance prediction for CPU cores (poster)", false, reproduce_cpu},
    Reproduction{"locality", "locality and interference in GPU clusters (poster)", false,
                 reproduce_locality},
    Reproduction{"oasis", "OASiS, online primal-dual admission (INFOCOM 2018)", false,
                 reproduce_oasis},
    Reproduction{"aonline", "A_online, weighted completion time (MobiHoc 2020)", false,
                 reproduce_aonline},
    Reproduction{"gavel", "Gavel, heterogeneity-aware policies (OSDI 2020)", true, reproduce_gavel},
    Reproduction{"gandiva-fair", "Gandiva_fair, tickets and trading (EuroSys 2020)", true,
                 reproduce_gandiva_fair},
    Reproduction{"chronus", "Chronus, deadlines by leases (SoCC 2021)", true, reproduce_chronus},
    Reproduction{"elasticflow", "ElasticFlow, deadlines by elastic shares (ASPLOS 2023)", true,
                 reproduce_elasticflow},
    Reproduction{"pollux", "Pollux, goodput-optimised scheduling (OSDI 2021)", true,
                 reproduce_pollux},
    Reproduction{"sia", "Sia, goodput on heterogeneous clusters (SOSP 2023)", true, reproduce_sia},
    Reproduction{"themis", "Themis, finish-time fairness (NSDI 2020)", false, reproduce_themis},
};

std::string list() {
  TextTable table({{"name", Align::Left}, {"data", Align::Left}, {"paper", Align::Left}});
  for (const Reproduction& one : reproductions())
    table.add_row({one.name, one.needs_data ? "needed" : "none", one.paper});
  return table.str() + "\n`berth reproduce NAME` runs one, `berth reproduce all` each of them.\n";
}

std::string as_text(const Reproduction& one, const Reproduced& result) {
  TextTable table({{"figure", Align::Left},
                   {"published", Align::Left},
                   {"ours", Align::Left},
                   {"why they differ", Align::Left}});
  for (const ReproducedFigure& figure : result.figures)
    table.add_row({figure.what, figure.published, figure.ours, figure.why});
  std::string text =
      fmt::format("{}: {}\nsetting: {}\n\n{}", one.name, one.paper, result.setting, table.str());
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  return text + "\n";
}

std::string as_markdown(const Reproduction& one, const Reproduced& result) {
  std::string text =
      fmt::format("## {}\n\n{}.\n\nSetting: {}\n\n", one.name, one.paper, result.setting);
  text += "| Figure | Published | Ours | Why they differ |\n|---|---|---|---|\n";
  for (const ReproducedFigure& figure : result.figures) {
    text += fmt::format("| {} | {} | {} | {} |\n", figure.what, figure.published, figure.ours,
                        figure.why);
  }
  text += '\n';
  for (const std::string& note : result.notes) text += fmt::format("{}\n\n", note);
  return text;
}

Result<std::vector<const Reproduction*>> chosen(const ReproduceCommand& command) {
  std::vector<const Reproduction*> some;
  std::vector<std::string> names{"all"};
  for (const Reproduction& one : reproductions()) {
    names.push_back(one.name);
    if (command.name != "all" && command.name != one.name) continue;
    const bool lacks = one.needs_data && command.data.empty();
    if (lacks && command.name == "all") {
      say(fmt::format("{} needs public data: give --data DIR", one.name));
      continue;
    }
    if (lacks) return fail(fmt::format("{} needs public data (give --data DIR)", one.name));
    some.push_back(&one);
  }
  if (some.empty() && command.name != "all")
    return fail(fmt::format("no reproduction is called '{}'{}", command.name,
                            suggestion(command.name, names)));
  return some;
}

}  // namespace

std::span<const Reproduction> reproductions() { return kReproductions; }

Exit execute(const ReproduceCommand& command) {
  if (command.name.empty()) return write_stdout(list());
  const auto some = chosen(command);
  if (!some) return complain(Exit::Misuse, some.error());
  const ReproduceOptions options{
      .data = command.data, .quick = command.quick, .seed = command.seed};
  std::string text;
  for (const Reproduction* one : *some) {
    const auto result = one->run(options);
    if (!result) return complain(Exit::Failure, result.error());
    text += command.markdown ? as_markdown(*one, *result) : as_text(*one, *result);
  }
  return write_stdout(text);
}

}  // namespace berth
