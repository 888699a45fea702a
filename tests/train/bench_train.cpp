// Training throughput through the public API: bench_train PRESET BATCH STEPS [DEVICE] [DATA]
//
//   build/release/bin/tenon_bench_train mlp 128 500        784-512-10, Adam
//   build/release/bin/tenon_bench_train lenet 64 300
#include <tenon/io/tensors.hpp>
#include <tenon/tenon.hpp>
#include <tenon/train/train.hpp>

#include <cstdio>
#include <cstdlib>

using namespace tenon;

int main(int argc, char** argv) {
  const std::string preset = argc > 1 ? argv[1] : "mlp", spec = argc > 4 ? argv[4] : "cpu:0";
  const uint32_t batch = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 128;
  const int64_t steps = argc > 3 ? std::atoll(argv[3]) : 300;
  try {
    manual_seed(1);
    const auto data = value_or_throw(data::load_idx_dataset(argc > 5 ? argv[5] : "/usr/share/datasets/fashion-mnist"));
    const Device where = device(spec.c_str());
    if (const char* pins = std::getenv("PIN"))  // "conv2d=onednn.conv2d,..."
      for (std::string rest = pins; !rest.empty();) {
        const std::string pin = rest.substr(0, rest.find(','));
        rest = rest.size() > pin.size() ? rest.substr(pin.size() + 1) : "";
        uint32_t op = 0;
        tn_op_find(where.runtime(), pin.substr(0, pin.find('=')).c_str(), 0, &op, nullptr);
        tn_pin(where.runtime(), op, where.id(), pin.substr(pin.find('=') + 1).c_str(), nullptr);
      }
    nn::Sequential net = train::build_model(train::preset_layers(preset, 10), data.train->shape());
    net.move_to(where);
    data::LoaderOptions options;
    options.batch = batch;
    options.seed = 1;
    options.normalise = data::measure_normalisation(*data.train);
    data::DataLoader loader(data.train, options);
    const bool last = std::getenv("ROW_MAJOR") == nullptr;
    train::LoaderSource source(loader, where, {.batch = batch, .channels_last = last});
    optim::Adam opt(net.parameters(), {.lr = 3e-3});
    const int64_t total = std::min<int64_t>(steps, 4 * source.batches_per_epoch());
    optim::Scheduler schedule(opt, optim::one_cycle(total));
    train::Trainer trainer({net, source, opt, &schedule}, {.epochs = 4, .max_steps = total});
    train::ProgressBar bar;
    trainer.add(bar);
    const train::FitReport r = trainer.fit();
    std::printf("%s batch %u: %lld steps, %.1f img/s, %.3f ms a step, loss %.4f accuracy %.4f\n", preset.c_str(), batch, static_cast<long long>(r.steps),
                r.images_per_s, 1e3 * r.seconds / static_cast<double>(r.steps), r.loss.value(), r.accuracy.value());
    const train::Evaluation e = train::evaluate(net, data.test, {.device = where, .normalise = options.normalise, .channels_last = last});
    std::printf("test: loss %.4f accuracy %.4f, %.1f img/s\n", e.loss.value(), e.accuracy.value(), e.images_per_s);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
