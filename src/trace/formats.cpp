// Every shape a trace can have, and how it is recognised: by the names in its header, or, where
// there is none, by a test of its own on the first rows.

#include "trace/formats.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "trace/csv.h"
#include "trace/jobcomp.h"
#include "trace/json_traces.h"
#include "trace/numbers.h"
#include "trace/sacct.h"
#include "trace/swf.h"
#include "trace/tables.h"

namespace berth {

namespace {

bool is_number(const std::string& text) { return parse_real(text).is_good(); }

// Rows without a header: their shape is the number of columns and where the numbers stand.
template <std::size_t width, std::size_t first_number, std::size_t last_number>
bool is_tab_table(const Sample& sample) {
  return sample.delimiter == "\t" && sample.header.size() == width &&
         is_number(sample.header[first_number]) && is_number(sample.header[last_number]);
}

// Id, model, arrival, duration, gpus: the model is the only word.
bool is_synergy(const Sample& sample) {
  const auto& first = sample.header;
  return first.size() == 5 && is_number(first[0]) && !is_number(first[1]) && is_number(first[2]) &&
         is_number(first[3]) && is_number(first[4]);
}

bool is_snowman(const Sample& sample) { return sample.delimiter == kSnowman; }

// Helios and PAI samples were published with one header; PAI task ids begin with "ali-".
bool has_pai_ids(const Sample& sample) {
  return !sample.row.empty() && sample.row.front().starts_with("ali-");
}

bool table_fits(const TableFormat& table, const Sample& sample) {
  if (table.header == Header::None) return true;  // the shape's own test decides
  return std::ranges::all_of(table.columns, [&](const TableColumn& column) {
    return column.presence == Presence::Optional ||
           std::ranges::find(sample.header, column.name) != sample.header.end();
  });
}

// The pod lists without times are still openb; the reader then says which columns are missing.
bool is_pod_list(const Sample& sample) {
  return std::ranges::find(sample.header, "gpu_milli") != sample.header.end() &&
         std::ranges::find(sample.header, "num_gpu") != sample.header.end();
}

Result<Trace> read_openb(std::string_view bytes, const std::string& file,
                         const ReadOptions& options, ReadReport* report) {
  return read_table(bytes, file, tables::kOpenb, options, report);
}

// Tried in this order: a narrower shape stands before a wider one that would also fit.
const std::array kShapes{
    FormatShape{.name = "native", .table = &tables::kNative},
    FormatShape{.name = "philly", .table = &tables::kPhilly},
    FormatShape{.name = "philly", .table = &tables::kPhillySample},
    FormatShape{.name = "philly", .table = &tables::kPhillySampleRaw},
    FormatShape{.name = "philly", .fits = looks_like_json_list, .read = read_philly_json},
    FormatShape{.name = "helios", .table = &tables::kHelios},
    FormatShape{.name = "pai", .table = &tables::kPaiSample, .fits = has_pai_ids},
    FormatShape{.name = "helios", .table = &tables::kHeliosSample},
    FormatShape{.name = "pai", .table = &tables::kPaiSample},
    FormatShape{.name = "pai", .table = &tables::kPaiTasks},
    FormatShape{.name = "openb", .fits = is_pod_list, .read = read_openb},
    FormatShape{.name = "openb-all", .table = &tables::kOpenbAll},  // only by its name
    FormatShape{.name = "dlrm", .table = &tables::kDlrm},
    FormatShape{.name = "muri", .table = &tables::kMuri},
    FormatShape{.name = "muri", .table = &tables::kMuriResults},
    FormatShape{.name = "chronus", .table = &tables::kChronus},
    FormatShape{.name = "elasticflow", .table = &tables::kElasticflow},
    FormatShape{.name = "tiresias", .table = &tables::kTiresias},
    FormatShape{.name = "itp", .table = &tables::kItp},
    FormatShape{.name = "rubick", .table = &tables::kRubick},
    FormatShape{.name = "sia", .table = &tables::kSia},
    FormatShape{.name = "acme", .table = &tables::kAcmeKalos},
    FormatShape{.name = "hydra", .table = &tables::kHydra},
    FormatShape{.name = "gavel", .table = &tables::kGavelMsr, .fits = is_tab_table<7, 4, 6>},
    FormatShape{.name = "gavel", .table = &tables::kGavel, .fits = is_tab_table<10, 5, 9>},
    FormatShape{
        .name = "shockwave", .table = &tables::kShockwave, .fits = is_tab_table<12, 10, 11>},
    FormatShape{.name = "synergy", .table = &tables::kSynergy, .fits = is_synergy},
    FormatShape{.name = "sacct", .table = &tables::kSacctSnowman, .fits = is_snowman},
    FormatShape{.name = "sacct", .fits = looks_like_sacct_text, .read = read_sacct_text},
    FormatShape{
        .name = "sacct", .fits = looks_like_sacct_for_people, .read = refuse_sacct_for_people},
    FormatShape{.name = "sacct", .fits = looks_like_jobcomp, .read = read_jobcomp},
    FormatShape{.name = "sacct", .table = &tables::kMitSupercloud},
    FormatShape{.name = "sacct", .fits = looks_like_json_object, .read = read_sacct_json},
    FormatShape{.name = "swf", .fits = looks_like_swf, .read = read_swf},
};

}  // namespace

// Names are lowered once, so that every test below compares plainly.
Sample sample_of(std::string_view bytes) {
  Sample sample{.bytes = bytes,
                .first_line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size())),
                .delimiter = {},
                .header = {},
                .row = {}};
  sample.delimiter = likely_delimiter(sample.first_line);
  // The beginning of a file is enough to recognise it, even if it has a million rows.
  CsvRows rows(bytes.substr(0, 1U << 16U), sample.delimiter);
  const auto copy_row = [&rows](std::vector<std::string>& target) {
    for (const std::string_view field : rows.fields()) target.emplace_back(trimmed(field));
  };
  if (rows.next()) copy_row(sample.header);
  if (rows.next()) copy_row(sample.row);
  for (std::string& name : sample.header) {
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return sample;
}

bool shape_fits(const FormatShape& shape, const Sample& sample) {
  return (shape.table == nullptr || table_fits(*shape.table, sample)) &&
         (shape.fits == nullptr || shape.fits(sample));
}

Result<Trace> read_shape(const FormatShape& shape, std::string_view bytes, const std::string& file,
                         const ReadOptions& options, ReadReport* report) {
  if (shape.read != nullptr) return shape.read(bytes, file, options, report);
  return read_table(bytes, file, *shape.table, options, report);
}

std::span<const FormatShape> format_shapes() noexcept { return kShapes; }

std::vector<FormatInfo> trace_formats() {
  return {
      {"native", "CSV with a header: job_id, submit_time, gpus, duration and optional columns"},
      {"philly",
       "Microsoft Philly 2017: the job table, its samples, or the JSON log with attempts"},
      {"helios", "SenseTime Helios 2020: cluster_log.csv or the Venus sample"},
      {"pai", "Alibaba PAI 2020: task samples or pai_task_table with its header"},
      {"openb", "Alibaba GPU-sharing pods 2023, fractions of a GPU included"},
      {"openb-all", "the same with the pods that ask for cores and memory alone"},
      {"dlrm", "Alibaba disaggregated inference instances 2025"},
      {"itp", "Microsoft ITP 2021, raw or with ElasticFlow's models and deadlines"},
      {"acme", "Acme Kalos 2023, converted to iterations"},
      {"muri", "Muri: times in milliseconds; also its testbed results"},
      {"tiresias", "Tiresias: num_gpu, submit_time, iterations, model_name, duration"},
      {"chronus", "Chronus: Philly jobs with deadlines, times in minutes"},
      {"elasticflow", "ElasticFlow: iterations, ddl, batch size"},
      {"rubick", "Rubick: LLM and vision jobs with execution plans"},
      {"sia", "Sia and Pollux workloads: applications without run times (also: pollux)"},
      {"gavel", "Gavel: 7 or 10 tab-separated columns, total steps instead of run times"},
      {"shockwave", "Shockwave: 12 tab-separated columns"},
      {"hydra", "Hydra: PAI jobs with run times by GPU type and deadlines"},
      {"synergy", "Synergy: id, model, arrival, duration, gpus without a header"},
      {"sacct",
       "Slurm accounting: sacct -P with any columns, sacct --json, U+2603 fields, the text file of "
       "jobcomp, or the MIT Supercloud table"},
      {"swf", "Standard Workload Format; one processor counts as one GPU"},
  };
}

}  // namespace berth
