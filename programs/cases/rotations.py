"""roma: random rotations, conversions, interpolation, rigid registration, and gradients."""

import roma
import torch

torch.manual_seed(0)
rotations = roma.random_rotmat(5, dtype=torch.float64)
vectors = roma.rotmat_to_rotvec(rotations)
quats = roma.rotmat_to_unitquat(rotations)
print("rotmat", rotations.sum((1, 2)).tolist())
print("rotvec", vectors.flatten().tolist())
print("quat", quats.flatten().tolist())
print("euler", roma.rotmat_to_euler("XYZ", rotations).flatten().tolist())
print("same", torch.allclose(roma.rotvec_to_rotmat(vectors), rotations))

steps = torch.linspace(0, 1, 4, dtype=torch.float64)
print("slerp", roma.unitquat_slerp(quats[0], quats[1], steps).flatten().tolist())
print("between", roma.rotmat_slerp(rotations[0], rotations[1], steps).sum((1, 2)).tolist())
print("distance", roma.rotmat_geodesic_distance(rotations[:-1], rotations[1:]).tolist())

points = torch.randn(20, 3, dtype=torch.float64)
moved = 1.5 * points @ rotations[2].T + torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
turn, shift, scale = roma.rigid_points_registration(points, moved, compute_scaling=True)
print("registered", torch.allclose(turn, rotations[2]), shift.tolist(), scale.item())

matrix = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
roma.special_procrustes(matrix).mul(torch.arange(9.0).reshape(3, 3)).sum().backward()
print("procrustes", matrix.grad.flatten().tolist())

guess = torch.zeros(3, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.Adam([guess], lr=0.1)
for step in range(30):
    loss = roma.rotmat_geodesic_distance(roma.rotvec_to_rotmat(guess + 1e-3), rotations[3])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print("fit", step, loss.item(), guess.tolist())
one = roma.Isometry(rotations[0], points[0])
two = roma.Isometry(rotations[1], points[1])
print("isometry", (one @ two).apply(points[2]).tolist(), one.inverse().apply(points[3]).tolist())
