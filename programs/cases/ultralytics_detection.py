"""ultralytics: YOLO models forwards and backwards, their losses, and suppression of boxes."""

import torch
from ultralytics.cfg import get_cfg
from ultralytics.nn.tasks import ClassificationModel, DetectionModel, PoseModel, SegmentationModel
from ultralytics.utils.loss import v8DetectionLoss
from ultralytics.utils.metrics import bbox_iou
from ultralytics.utils.nms import non_max_suppression
from ultralytics.utils.ops import xywh2xyxy

images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
for kind, name, sizes in (
    (DetectionModel, "yolov8n.yaml", {"nc": 4}),
    (DetectionModel, "yolo11n.yaml", {"nc": 4}),
    (SegmentationModel, "yolov8n-seg.yaml", {"nc": 3}),
    (PoseModel, "yolov8n-pose.yaml", {"nc": 1}),
    (ClassificationModel, "yolo11n-cls.yaml", {"nc": 5}),
):
    torch.manual_seed(1)
    model = kind(name, verbose=False, **sizes)
    model.eval()
    with torch.no_grad():
        out = model(images)
    first = out[0] if isinstance(out, tuple) else out
    first = first[0] if isinstance(first, tuple) else first
    print(name, sum(p.numel() for p in model.parameters()), tuple(first.shape), first.mean().item())
    model.fuse(verbose=False)
    with torch.no_grad():
        again = model(images)
    again = again[0] if isinstance(again, tuple) else again
    again = again[0] if isinstance(again, tuple) else again
    print("fused", again.mean().item())

torch.manual_seed(2)
model = DetectionModel("yolov8n.yaml", nc=4, verbose=False)
model.args = get_cfg()
model.train()
batch = {
    "img": images,
    "batch_idx": torch.tensor([0.0, 0.0, 1.0]),
    "cls": torch.tensor([[1.0], [3.0], [0.0]]),
    "bboxes": torch.tensor([[0.5, 0.5, 0.4, 0.6], [0.3, 0.3, 0.2, 0.2], [0.6, 0.5, 0.5, 0.4]]),
}
criterion = v8DetectionLoss(model)
optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
for _ in range(3):
    optimizer.zero_grad()
    total, _ = criterion(model(images), batch)
    total.sum().backward()
    optimizer.step()
    print("step", total.tolist())
model.eval()
with torch.no_grad():
    found = non_max_suppression(model(images)[0], conf_thres=0.005, max_det=5)
print("boxes", [len(one) for one in found], sum(one[:, :4].sum().item() for one in found))
corners = xywh2xyxy(batch["bboxes"])
print("ciou", bbox_iou(corners[:2], corners[1:], xywh=False, CIoU=True).tolist())
