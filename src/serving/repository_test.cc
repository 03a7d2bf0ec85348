#include "serving/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sluice::serving {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A repository in a directory that is gone at the end; `outside` lies beside it.
class RepositoryTest : public testing::Test {
 protected:
  RepositoryTest() : base_(testing::TempDir() + "sluice-repository-XXXXXX") {
    EXPECT_NE(::mkdtemp(base_.data()), nullptr);
    std::filesystem::create_directories(root());
  }
  ~RepositoryTest() override { std::filesystem::remove_all(base_); }

  std::string root() const { return base_ + "/models"; }
  std::string outside(const std::string& name) const { return base_ + "/" + name; }

  void write(const std::string& name, std::string_view content = "graph") const {
    const std::filesystem::path path = root() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  void link(const std::string& target, const std::string& name) const {
    const std::filesystem::path path = root() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  }

  RepositoryListing scan() const {
    auto listing = scan_repository(root());
    EXPECT_TRUE(listing) << listing.error().message;
    return listing ? std::move(*listing) : RepositoryListing{};
  }
  ModelEntry only_model() const {
    RepositoryListing listing = scan();
    EXPECT_EQ(listing.models.size(), 1U);
    return listing.models.empty() ? ModelEntry{} : listing.models[0];
  }
  std::vector<std::string> selected(std::string_view config) const {
    write("m/config.pbtxt", config);
    std::vector<std::string> versions;
    for (const ModelVersionEntry& version : only_model().versions) versions.push_back(version.version);
    return versions;
  }

 private:
  std::string base_;
};

std::string reason(const std::optional<Error>& error) { return error ? error->message : "no error"; }

// Reads every file as one that doubles rows of three floats; remembers what it was asked.
class FakeEngine : public engine::Engine {
 public:
  explicit FakeEngine(std::string name) : name_(std::move(name)) {}
  std::string_view backend_name() const override { return name_; }
  std::string version() const override { return "1"; }
  Result<ModelSignature> inspect(const engine::LoadRequest& request) override {
    inspected.push_back(request.model_path);
    if (!error.empty()) return fail(Code::kInvalidArgument, error);
    return ModelSignature{.inputs = {{"x", DataType::kFp32, {-1, 3}}}, .outputs = {{"y", DataType::kFp32, {-1, 3}}}};
  }
  Result<std::shared_ptr<engine::BatchModel>> load(const engine::LoadRequest&) override {
    return fail(Code::kUnimplemented, "it only inspects");
  }

  std::vector<std::string> inspected;
  std::string error;

 private:
  std::string name_;
};

struct Engines {
  Engines() {
    auto engine = std::make_unique<FakeEngine>("onnxruntime");
    onnx = engine.get();
    set.add(std::move(engine));
    set.add(std::make_unique<FakeEngine>("identity"));
  }
  EngineSet set;
  FakeEngine* onnx = nullptr;
};

TEST_F(RepositoryTest, ListsModelsByNameWithTheirVersions) {
  write("ocr/config.pbtxt", "name: \"ocr\" max_batch_size: 8");
  write("ocr/1/model.onnx");
  write("ocr/labels.txt");
  write("asr/7/model.onnx");
  write("README.md");
  write(".git/HEAD");
  const RepositoryListing listing = scan();
  ASSERT_EQ(listing.models.size(), 2U);
  EXPECT_EQ(listing.models[0].name, "asr");
  EXPECT_FALSE(listing.models[0].config);
  EXPECT_EQ(listing.models[0].directory, root() + "/asr");
  ASSERT_EQ(listing.models[0].versions.size(), 1U);
  EXPECT_EQ(listing.models[0].versions[0].version, "7");
  EXPECT_EQ(listing.models[0].versions[0].model_path, root() + "/asr/7/model.onnx");
  EXPECT_EQ(listing.models[1].name, "ocr");
  ASSERT_TRUE(listing.models[1].config);
  EXPECT_EQ(listing.models[1].config->max_batch_size, 8);
  for (const ModelEntry& entry : listing.models) EXPECT_EQ(reason(entry.error), "no error");
}

TEST_F(RepositoryTest, IsEmptyWithoutModels) { EXPECT_TRUE(scan().models.empty()); }

TEST_F(RepositoryTest, SelectsVersionsByPolicyInNumericOrder) {
  for (const char* version : {"1", "2", "10", "03", "0", "-4", "v5", "99999999999999999999"}) {
    write(std::string("m/") + version + "/model.onnx");
  }
  write("m/6");  // a file is no version
  EXPECT_THAT(selected(""), ElementsAre("10"));
  EXPECT_THAT(selected("version_policy { latest { num_versions: 2 } }"), ElementsAre("2", "10"));
  EXPECT_THAT(selected("version_policy { latest { num_versions: 9 } }"), ElementsAre("1", "2", "10"));
  EXPECT_THAT(selected("version_policy { all { } }"), ElementsAre("1", "2", "10"));
  EXPECT_THAT(selected("version_policy { specific { versions: [ 10, 1 ] } }"), ElementsAre("1", "10"));
}

TEST_F(RepositoryTest, WarnsOfASpecificVersionThatIsNotThere) {
  write("m/1/model.onnx");
  EXPECT_THAT(selected("version_policy { specific { versions: [ 1, 8 ] } }"), ElementsAre("1"));
  EXPECT_THAT(only_model().config->warnings, ElementsAre(HasSubstr("no version 8")));
  EXPECT_THAT(selected("version_policy { specific { versions: 8 } }"), ElementsAre());
  EXPECT_THAT(reason(only_model().error), HasSubstr("none of the 1 versions"));
}

TEST_F(RepositoryTest, OneBadModelNeverHidesTheOthers) {
  write("a/1/model.onnx");
  write("b/config.pbtxt", "max_batchsize: 4");
  write("b/1/model.onnx");
  write("c d/1/model.onnx");
  write("e/config.pbtxt", "name: \"f\"");
  write("e/1/model.onnx");
  std::filesystem::create_directories(root() + "/g");
  write("h/config.pbtxt", std::string((1 << 20) + 1, '#'));
  const RepositoryListing listing = scan();
  ASSERT_EQ(listing.models.size(), 6U);
  EXPECT_EQ(reason(listing.models[0].error), "no error");
  EXPECT_THAT(reason(listing.models[1].error), AllOf(HasSubstr("config.pbtxt:1:"), HasSubstr("max_batchsize")));
  EXPECT_THAT(reason(listing.models[2].error), HasSubstr("a model's name has"));
  EXPECT_THAT(reason(listing.models[3].error), HasSubstr("says name 'f', the folder is 'e'"));
  EXPECT_THAT(reason(listing.models[4].error), HasSubstr("no version folder"));
  EXPECT_THAT(reason(listing.models[5].error), HasSubstr("1048576 bytes"));
}

TEST_F(RepositoryTest, NamesWhatAHalfCopiedVersionLacks) {
  write("m/config.pbtxt", "version_policy { all { } }");
  write("m/1/model.onnx");
  write("m/2/model.onnx", "");
  std::filesystem::create_directories(root() + "/m/3");
  const ModelEntry model = only_model();
  EXPECT_EQ(reason(model.error), "no error");
  ASSERT_EQ(model.versions.size(), 3U);
  EXPECT_EQ(reason(model.versions[0].error), "no error");
  EXPECT_THAT(reason(model.versions[1].error), HasSubstr("'m/2/model.onnx' is empty"));
  EXPECT_THAT(reason(model.versions[2].error), HasSubstr("'m/3/model.onnx' is missing"));
  Engines engines;
  EXPECT_TRUE(resolve_config(model, model.versions[0], engines.set));
  const auto refused = resolve_config(model, model.versions[2], engines.set);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("model 'm' version 3: 'm/3/model.onnx' is missing"));
  EXPECT_THAT(engines.onnx->inspected, ElementsAre(root() + "/m/1/model.onnx"));
}

TEST_F(RepositoryTest, ReadsTheFileThatTheConfigurationNames) {
  write("m/config.pbtxt", "default_model_filename: \"net.onnx\"");
  write("m/1/net.onnx");
  const ModelEntry model = only_model();
  ASSERT_EQ(model.versions.size(), 1U);
  EXPECT_EQ(model.versions[0].model_path, root() + "/m/1/net.onnx");
  EXPECT_EQ(reason(model.versions[0].error), "no error");
}

TEST_F(RepositoryTest, NeedsNoFileForABackendWithoutOne) {
  write("m/config.pbtxt", "backend: \"identity\"");
  std::filesystem::create_directories(root() + "/m/1");
  const ModelEntry model = only_model();
  ASSERT_EQ(model.versions.size(), 1U);
  EXPECT_EQ(reason(model.versions[0].error), "no error");
  EXPECT_EQ(model.versions[0].model_path, root() + "/m/1");
}

TEST_F(RepositoryTest, FollowsLinksInsideAndRefusesThoseThatLeadOut) {
  std::ofstream(outside("secret.onnx")) << "secret";
  write("a/1/model.onnx");
  link("../../a/1/model.onnx", "b/1/model.onnx");
  link("../../../secret.onnx", "c/1/model.onnx");
  link(outside("secret.onnx"), "d/config.pbtxt");
  write("d/1/model.onnx");
  write("e/config.pbtxt", "default_model_filename: \"../../../secret.onnx\"");
  write("e/1/model.onnx");
  link("nowhere", "f/config.pbtxt");
  write("f/1/model.onnx");
  const RepositoryListing listing = scan();
  ASSERT_EQ(listing.models.size(), 6U);
  EXPECT_EQ(reason(listing.models[1].versions.at(0).error), "no error");
  ASSERT_TRUE(listing.models[2].versions.at(0).error);
  EXPECT_EQ(listing.models[2].versions[0].error->code, Code::kPermissionDenied);
  ASSERT_TRUE(listing.models[3].error);
  EXPECT_EQ(listing.models[3].error->code, Code::kPermissionDenied);
  ASSERT_TRUE(listing.models[4].versions.at(0).error);
  EXPECT_EQ(listing.models[4].versions[0].error->code, Code::kPermissionDenied);
  EXPECT_THAT(reason(listing.models[5].error), HasSubstr("config.pbtxt"));
}

TEST_F(RepositoryTest, ChecksTheFilesThatTheConfigurationNames) {
  std::ofstream(outside("labels.txt")) << "secret";
  write("a/config.pbtxt", "output { name: \"y\" label_filename: \"labels.txt\" }");
  write("a/1/model.onnx");
  write("b/config.pbtxt", "output { name: \"y\" label_filename: \"../../labels.txt\" }");
  write("b/1/model.onnx");
  write("c/config.pbtxt", "model_warmup { inputs { key: \"x\" value { data_type: TYPE_FP32 dims: 3 "
                          "input_data_file: \"row\" } } }");
  write("c/1/model.onnx");
  RepositoryListing listing = scan();
  ASSERT_EQ(listing.models.size(), 3U);
  EXPECT_THAT(reason(listing.models[0].error), HasSubstr("output.label_filename 'labels.txt'"));
  EXPECT_THAT(reason(listing.models[1].error), HasSubstr("leads out"));
  EXPECT_THAT(reason(listing.models[2].error), HasSubstr("input_data_file 'warmup/row'"));
  write("a/labels.txt");
  write("c/warmup/row");
  listing = scan();
  EXPECT_EQ(reason(listing.models.at(0).error), "no error");
  EXPECT_EQ(reason(listing.models.at(2).error), "no error");
}

TEST_F(RepositoryTest, TakesOneFileAsARepositoryOfOneModel) {
  write("silero_vad.onnx");
  const auto listing = scan_repository(root() + "/silero_vad.onnx");
  ASSERT_TRUE(listing) << listing.error().message;
  ASSERT_EQ(listing->models.size(), 1U);
  EXPECT_EQ(listing->models[0].name, "silero_vad");
  ASSERT_EQ(listing->models[0].versions.size(), 1U);
  EXPECT_EQ(listing->models[0].versions[0].version, "1");
  EXPECT_EQ(listing->models[0].versions[0].model_path, root() + "/silero_vad.onnx");
  Engines engines;
  const auto config = resolve_config(listing->models[0], listing->models[0].versions[0], engines.set);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name, "silero_vad");
  EXPECT_EQ(config->default_model_filename, "silero_vad.onnx");
}

TEST_F(RepositoryTest, SaysWhatIsWrongWithThePath) {
  const auto missing = scan_repository(root() + "/none.onnx");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("none.onnx"));
  EXPECT_FALSE(scan_repository(root() + "/none/model.onnx"));
  EXPECT_FALSE(scan_repository(""));
  write("bad name.onnx");
  const auto named = scan_repository(root() + "/bad name.onnx");
  ASSERT_FALSE(named);
  EXPECT_THAT(named.error().message, HasSubstr("'bad name'"));
  write("config.pbtxt");
  const auto model = scan_repository(root());
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("name the folder above it"));
}

TEST(EngineSet, FindsByBackendThenPlatformThenExtension) {
  Engines engines;
  const auto name = [&](const ModelConfig& config, const std::string& path) -> std::string {
    const auto found = engines.set.find(config, path);
    return found ? std::string((*found)->backend_name()) : found.error().message;
  };
  EXPECT_EQ(name({.backend = "identity"}, "m/1/model.onnx"), "identity");
  EXPECT_EQ(name({.platform = "onnxruntime_onnx"}, "m/1/net"), "onnxruntime");
  EXPECT_EQ(name({.platform = "identity"}, "m/1"), "identity");
  EXPECT_EQ(name({}, "m/1/model.onnx"), "onnxruntime");
  EXPECT_EQ(name({.backend = "tensorrt"}, "m"), "backend 'tensorrt' is not supported, there is: onnxruntime, identity");
  EXPECT_EQ(name({.platform = "tensorrt_plan"}, "m/1/model.onnx"),
            "backend 'tensorrt_plan' is not supported, there is: onnxruntime, identity");
  EXPECT_THAT(name({}, "model.bin"), HasSubstr("'model.bin' has no extension"));
}

TEST_F(RepositoryTest, CompletesAConfigurationFromTheModel) {
  write("m/config.pbtxt", "dynamic_batching { max_queue_delay_microseconds: 100 }\noptimization { }");
  write("m/2/model.onnx");
  const ModelEntry model = only_model();
  Engines engines;
  const auto config = resolve_config(model, model.versions.at(0), engines.set);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name, "m");
  EXPECT_EQ(config->backend, "onnxruntime");
  EXPECT_EQ(config->platform, "onnxruntime_onnx");
  EXPECT_EQ(config->default_model_filename, "model.onnx");
  EXPECT_EQ(config->max_batch_size, kAutoMaxBatchSize);
  ASSERT_TRUE(config->dynamic_batching);
  EXPECT_EQ(config->dynamic_batching->max_queue_delay_us, 100U);
  EXPECT_THAT(config->inputs.at(0).dims, ElementsAre(3));
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("optimization")));
}

TEST_F(RepositoryTest, NamesModelAndVersionOfWhatCannotBeResolved) {
  write("m/config.pbtxt", "input { name: \"z\" }");
  write("m/2/model.onnx");
  const ModelEntry model = only_model();
  Engines engines;
  const auto refused = resolve_config(model, model.versions.at(0), engines.set);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "model 'm' version 2: the model has no input 'z', it has: x");
  engines.onnx->error = "not a graph";
  const auto broken = resolve_config(model, model.versions.at(0), engines.set);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message, "model 'm' version 2: not a graph");
}

}  // namespace
}  // namespace sluice::serving
